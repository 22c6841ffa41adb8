import {
  messageOf, nameSchema, shellWords, slotConfigSchema, svcError, type ConfigDraft, type RouteCall
} from 'svc-gateway/plugin'
import { stackCatalog, type NamedStack, type Stack } from '../../services/stack-catalog/ref.js'
import type { StackServices } from './stack-api.js'
import { contradictoryRow, invalidSlug, seedStack, stackExists, stackNotFound } from './stack-errors.js'

type Audited = Parameters<StackServices['activity']['audited']>[1]
type Caller = Pick<RouteCall, 'actor' | 'requestId'>

/** Throws `stacks.invalid_name`. */
export function requireSlug (slug: string): void {
  if (!nameSchema.safeParse(slug).success) throw invalidSlug(slug)
}

/** Throws `validation.invalid` for flags that no shell could split. Pure. */
export function requireFlags ({ slots, profiles }: Pick<Stack, 'slots' | 'profiles'>): void {
  const texts = [
    ...slots.map((row, i) => [`slots.${i}.server_extra_args`, row.server_extra_args] as const),
    ...Object.entries(profiles).map(([name, { flags }]) => [`profiles.${name}.flags`, flags] as const)
  ]
  for (const [path, text] of texts) {
    if (typeof text !== 'string') continue
    try {
      shellWords(text)
    } catch (error) {
      const message = messageOf(error)
      throw svcError('validation.invalid', `${path}: ${message}`, { param: path, details: { fields: [{ path, message }] } })
    }
  }
}

type RowServices = Pick<StackServices, 'slots' | 'providers'>

/**
 * Throws for rows that contradict themselves: a device with a profile or an engine that is for another one. A profile
 * or an engine that is not known here contradicts nothing.
 */
function requireCoherentRows (services: RowServices, draft: ConfigDraft, { slots: rows, profiles: copies }: Stack): void {
  const { slots, providers } = services
  const profiles = new Map(draft.profiles)
  for (const [name, copy] of Object.entries(copies)) if (!profiles.has(name)) profiles.set(name, { ...copy, name, seed: false })
  for (const [i, { slot, type, device, provider, profile }] of rows.entries()) {
    if (device === null) continue
    const kind = type ?? draft.slots.get(slot)?.type ?? 'llm'
    const row = slotConfigSchema.parse({
      device,
      type: kind,
      profile: profile !== null && profiles.has(profile) ? profile : null
    })
    const engine = providers.nameFor({ provider, type: kind, device, profile })
    const problem = slots.check([{ ...row, name: slot, provider: engine }], profiles).find(({ rule }) => rule === 'profile' || rule === 'provider')
    if (problem !== undefined) throw contradictoryRow(`slots.${i}.${problem.param ?? 'device'}`, problem)
  }
}

/** Throws `stacks.exists`, `stacks.seed_immutable`, `stacks.invalid_name`. */
export async function addStack (services: RowServices, draft: ConfigDraft, slug: string, stack: Stack): Promise<void> {
  requireSlug(slug)
  const present = stackCatalog.of(draft).get(slug)
  if (present !== undefined) throw present.seed ? seedStack(slug) : stackExists(slug)
  requireCoherentRows(services, draft, stack)
  await draft.putRow(stackCatalog.file, slug, stack)
}

/** Null removes it. Throws `stacks.not_found`, `stacks.seed_immutable`. */
export async function replaceStack (services: RowServices, draft: ConfigDraft, slug: string, stack: Stack | null): Promise<void> {
  const present = stackCatalog.of(draft).get(slug)
  if (present === undefined) throw stackNotFound(slug)
  if (present.seed) throw seedStack(slug)
  if (stack !== null) requireCoherentRows(services, draft, stack)
  await draft.putRow(stackCatalog.file, slug, stack)
}

export function audited<T> (
  { activity }: Pick<StackServices, 'activity'>, caller: Caller, action: string, slug: string,
  work: (note: Parameters<Audited>[0]) => Promise<T>
): Promise<T> {
  const row = { category: 'stack', action: `stack.${action}`, target: slug, actor: caller.actor, request_id: caller.requestId }
  return activity.audited(row, work)
}

/** What a change to the catalogue is told as. */
export function tell ({ events }: Pick<StackServices, 'events'>, verb: 'created' | 'updated' | 'deleted', slug: string): void {
  events.emit({ type: `stack.${verb}`, source: `stack:${slug}`, message: `stack ${slug} is ${verb}`, data: { slug } })
}

/** A stack as it is kept, without what only this gateway adds. Pure. */
export function bodyOf ({ slug: _, seed: __, ...stack }: NamedStack): Stack {
  return stack
}
