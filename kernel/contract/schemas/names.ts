import { z } from 'zod'
import { MAX_LIST_ENTRIES } from './free-table.js'

/** Slot and profile names: lowercase alphanumerics, `-`, `_`, at most 32, leading alphanumeric. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9_-]{0,31}$/
export const nameSchema = z.string().regex(NAME_PATTERN, {
  error: 'must be lowercase letters, digits, `-` or `_`, start with a letter or digit, and have at most 32 characters'
})

/** Plugin names are kebab-case; they double as config key, log field and error domain. */
export const PLUGIN_NAME_PATTERN = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/

/** What runs a slot's engine: a form, a driver of the gateway, or one that a plugin brings. */
export const runtimeNameSchema = z.string().regex(PLUGIN_NAME_PATTERN, { error: 'must be container, process, docker, podman or the name of a runtime that a plugin brings' })

/** Names of an engine's further ports. */
export const PORT_NAME_PATTERN = /^[a-z][a-z0-9_-]*$/

export const ENV_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/

/** Explicit container environment: keys are shell names, values hold no newline. */
export const envSchema = z.record(
  z.string().regex(ENV_NAME_PATTERN, { error: 'must match [A-Za-z_][A-Za-z0-9_]*' }),
  z.string().regex(/^[^\r\n\u0000]*$/, { error: 'must not contain a newline' })
).refine(env => Object.keys(env).length <= MAX_LIST_ENTRIES, { error: `must hold at most ${MAX_LIST_ENTRIES} values` })
