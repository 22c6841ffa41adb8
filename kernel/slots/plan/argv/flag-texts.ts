import {
  messageOf, shellWords, svcError, type FlagGrammar, type FlagRules, type Model, type NamedProfile, type NamedSlotConfig,
  type NewModelRow, type Profile, type ProviderCatalog, type SvcError
} from '../../../contract/index.js'
import { profileProvider } from '../profile-provider.js'
import { managedFlags, managedFlagsAboveFields } from './managed-flags.js'

type Providers = Pick<ProviderCatalog, 'get' | 'defaultFor' | 'nameFor' | 'ownerOf'>
type Words = string | readonly string[]

/** Splits a flag string; an open quote is a configuration error that names the key. */
export function splitArgs (value: Words, key: string): readonly string[] {
  try {
    return typeof value === 'string' ? shellWords(value) : value
  } catch (error) {
    throw svcError('slot.config_error', `${key}: ${messageOf(error)}`, { param: key, details: { path: key } })
  }
}

/**
 * Every text of engine flags that a user can write, against the flags that the gateway owns. Asked by each writer and once
 * more at the launch. Each gives the words, and throws `slot.managed_arg_denied`, or `slot.config_error` for an open quote.
 */
export function extraArgsWords ({ name, server }: Pick<NamedSlotConfig, 'name' | 'server'>, grammar?: FlagGrammar): readonly string[] {
  const words = splitArgs(server.extra_args, 'server.extra_args')
  return refused(words, managedFlagsAboveFields(words, grammar), `extra_args of slot '${name}'`, 'server.extra_args', { slot: name })
}

/** The engine's environment, as a slot sets it. Throws `slot.managed_arg_denied`. */
export function serverEnv (
  { name, server }: Pick<NamedSlotConfig, 'name' | 'server'>, { managedEnv = [] }: FlagGrammar = {}
): Readonly<Record<string, string>> {
  const owned = Object.keys(server.env).filter(variable => managedEnv.includes(variable))
  if (owned.length > 0) throw managedArgDenied(`[server] env of slot '${name}'`, owned, 'server.env', { slot: name })
  return server.env
}

export function profileWords (
  { name, flags }: Pick<NamedProfile, 'name' | 'flags'>, grammar?: FlagGrammar, key = 'flags'
): readonly string[] {
  const words = splitArgs(flags, `flags of profile '${name}'`)
  return refused(words, managedFlags(words, grammar), `flags of profile '${name}'`, key, { profile: name })
}

export function modelDefaultsWords ({ id, defaults }: Pick<Model, 'id' | 'defaults'>, grammar?: FlagGrammar): readonly string[] {
  const words = splitArgs(defaults.extra_args ?? '', `defaults.extra_args of model '${id}'`)
  return refused(words, managedFlagsAboveFields(words, grammar), `defaults.extra_args of model '${id}'`, 'defaults.extra_args', { model: id })
}

/** A profile that is about to be written: its flags, for the engine it is made for; no GPU runtime without a GPU. */
export function checkProfileFlags (name: string, profile: Profile, providers: Providers): void {
  const { backend, device_class: wanted } = profile
  if (backend !== null && (wanted === 'cpu' || wanted === 'npu')) {
    const message = `must be null for device class ${wanted}, which has no GPU runtime`
    throw svcError('validation.invalid', `profile '${name}': backend ${message}`,
      { param: 'backend', details: { fields: [{ path: 'backend', message }] } })
  }
  const named = { ...profile, name, seed: false }
  profileWords(named, profileProvider(named, providers)?.flags)
}

/** A registry row that is about to be written; what it says already stops no other change of it. */
export function checkModelFlags (id: string, row: NewModelRow, before: Model | undefined, providers: Providers): void {
  const { defaults } = row
  if (defaults?.extra_args === undefined || defaults.extra_args === before?.defaults.extra_args) return
  modelDefaultsWords({ id, defaults }, providers.defaultFor('llm')?.flags)
}

/** For rows of files that plugins own. */
export function flagRules (providers: Providers): FlagRules {
  return {
    slot (text, wish, { slot, what, param }) {
      const words = splitArgs(text, param)
      const flags = managedFlagsAboveFields(words, providers.get(providers.nameFor(wish))?.flags)
      refused(words, flags, what, param, { slot })
    },
    profile (name, profile, param) {
      const named = { ...profile, name, seed: false }
      profileWords(named, profileProvider(named, providers)?.flags, param)
    }
  }
}

function refused (
  words: readonly string[], flags: readonly string[], where: string, param: string, details: Readonly<Record<string, unknown>>
): readonly string[] {
  if (flags.length > 0) throw managedArgDenied(where, flags, param, details)
  return words
}

function managedArgDenied (
  where: string, flags: readonly string[], param: string, details: Readonly<Record<string, unknown>>
): SvcError {
  const [verb, pronoun] = flags.length === 1 ? ['is', 'it'] : ['are', 'them']
  return svcError('slot.managed_arg_denied',
    `${where}: ${flags.join(', ')} ${verb} set by the gateway; remove ${pronoun} and use the fields of the slot instead`,
    { param, details: { ...details, flags } })
}
