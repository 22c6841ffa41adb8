import { basename, isAbsolute } from 'node:path'
import { bodyChecksum, portableArgs, portableFlags, type Model, type Profile } from 'svc-gateway/plugin'
import { z } from 'zod'
import { STACK_VERSION, stackSchema, type Stack, type StackSlot } from '../../services/stack-catalog/ref.js'
import { ENVELOPE_KIND, type envelopeSchema } from './schemas.js'
import { badEnvelope, envelopeTooNew } from './stack-errors.js'

export type StackEnvelope = z.output<typeof envelopeSchema>

export interface SealContext {
  readonly release: string
  readonly now: number
  readonly models: readonly Model[]
  /** Takes secrets that the gateway knows out of a text. */
  readonly clean: (text: string) => string
}

/** A stack as it may leave this host: no secrets, no paths. Pure but for `clean`. */
export function sealStack (stack: Stack, { release, now, models, clean }: SealContext): StackEnvelope {
  const omitted: string[] = []
  const note = (what: string, flags: readonly string[]): void => { omitted.push(...flags.map(flag => `${what}: ${flag}`)) }
  const modelId = (id: string | null): string | null => {
    if (id === null || !isAbsolute(id)) return id
    return models.find(({ path }) => path === id)?.id ?? basename(id)
  }
  const slots = stack.slots.map((row): StackSlot => ({
    ...row,
    model: modelId(row.model),
    server_extra_args: portableRowArgs(row, note),
    capabilities: row.capabilities.map(wanted => ({ ...wanted, model: modelId(wanted.model) }))
  }))
  const profiles = Object.entries(stack.profiles).map(([name, profile]): [string, Profile] => {
    const { flags, omitted: left } = portableFlags(profile.flags)
    note(`profile ${name}`, left)
    return [name, { ...profile, flags }]
  })
  const known = Object.entries(stack.models).map(([id, model]) => [modelId(id)!, { ...model, id: modelId(model.id)! }])
  const portable = { ...stack, slots, profiles: Object.fromEntries(profiles), models: Object.fromEntries(known) }
  const body = stackSchema.parse(cleaned(portable, clean))
  return {
    kind: ENVELOPE_KIND,
    schema_version: STACK_VERSION,
    svc_version: release,
    exported_at: new Date(now).toISOString(),
    checksum: bodyChecksum(body),
    stack: body,
    ...(omitted.length === 0 ? {} : { omitted })
  }
}

export interface OpenedEnvelope {
  readonly stack: Stack
  readonly schemaVersion: number
  readonly checksumOk: boolean
}

/** Unknown keys are ignored; a missing checksum is not a wrong one. */
const incomingSchema = z.looseObject({
  kind: z.literal(ENVELOPE_KIND),
  schema_version: z.int().min(1),
  checksum: z.string().nullish(),
  stack: z.record(z.string(), z.unknown())
})

/**
 * Throws `stacks.envelope_too_new`, and `stacks.bad_envelope` for everything but a wrong checksum, which the caller judges.
 * Pure.
 */
export function openEnvelope (envelope: unknown): OpenedEnvelope {
  const incoming = incomingSchema.safeParse(envelope)
  if (!incoming.success) throw badEnvelope(firstIssue(incoming.error))
  const { schema_version: version, checksum, stack } = incoming.data
  const newest = Math.max(version, typeof stack.schema_version === 'number' ? stack.schema_version : 0)
  if (newest > STACK_VERSION) throw envelopeTooNew(newest, STACK_VERSION)
  const body = stackSchema.safeParse(stack)
  if (!body.success) throw badEnvelope(`stack: ${firstIssue(body.error)}`)
  return { stack: body.data, schemaVersion: version, checksumOk: checksum == null || checksum === bodyChecksum(stack) }
}

function portableRowArgs (
  { slot, server_extra_args: args }: StackSlot, note: (what: string, flags: readonly string[]) => void
): StackSlot['server_extra_args'] {
  if (args === null) return null
  if (typeof args === 'string') {
    const { flags, omitted } = portableFlags(args)
    note(`slot ${slot}`, omitted)
    return flags
  }
  const { words, omitted } = portableArgs(args)
  note(`slot ${slot}`, omitted)
  return [...words]
}

/** Every text in it, but no key. */
function cleaned (value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === 'string') return clean(value)
  if (Array.isArray(value)) return value.map(item => cleaned(item, clean))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cleaned(inner, clean)]))
}

function firstIssue (error: z.ZodError): string {
  const { path, message } = error.issues[0]!
  return path.length === 0 ? message : `${path.map(String).join('.')}: ${message}`
}
