import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { bodyChecksum, slotConfigSchema, type ConfigDraft, type NamedSlotConfig, type Paths } from 'svc-gateway/plugin'
import { z } from 'zod'
import { capabilityChildren, capabilityChoices } from '../../services/capabilities/ref.js'
import { stackCatalog, type NamedStack } from '../../services/stack-catalog/ref.js'
import type { drifts } from './schemas.js'

/** Below the state root; written in the same change as the configuration, so that an interrupted apply is known. */
export const POINTER_FILE = 'stacks.json'

const targetSchema = z.object({
  load: z.array(z.string()),
  children: z.array(z.enum(capabilityChildren)),
  keep: z.array(z.string())
})

const pointerSchema = z.object({
  version: z.literal(1),
  /** Of this one apply. */
  id: z.string(),
  active_slug: z.string(),
  content_hash: z.string(),
  applied_at: z.string(),
  converge_ok: z.boolean(),
  /** The live set may not be what the stack says yet; a start goes on with it. */
  pending: z.boolean(),
  target: targetSchema,
  /** What the stack asks for and cannot be had. */
  refused: z.array(z.object({ target: z.string(), error: z.string() }))
})
export type StackPointer = z.output<typeof pointerSchema>

/** What is to run: slots to load, capabilities to apply, and all slots that stay up. */
export type StackTarget = z.output<typeof targetSchema>

/** The stack that was applied last; null for none, and for an invalid file. */
export async function readPointer ({ state }: Pick<Paths, 'state'>): Promise<StackPointer | null> {
  const text = await readFile(join(state, POINTER_FILE), 'utf8').catch(() => '')
  try {
    return pointerSchema.parse(JSON.parse(text))
  } catch {
    return null
  }
}

export function pointerText (pointer: StackPointer): string {
  return `${JSON.stringify(pointer, null, 2)}\n`
}

type Configured = Pick<ConfigDraft, 'slots' | 'files'>

/**
 * What a stack says and what its slots and capabilities are configured as. Defaults do not count, so that a release may
 * add some. Pure.
 */
export function contentHash ({ slots: rows }: Pick<NamedStack, 'slots'>, { slots, files }: Configured): string {
  const selections = capabilityChoices.of({ files })
  const named = rows.filter(({ model }) => model !== null).map(({ slot }) => [slot, toldOf(slots.get(slot))])
  const children = rows.flatMap(row => row.capabilities).map(({ child }) => [child, selections[child] ?? null])
  return bodyChecksum({ rows, slots: Object.fromEntries(named), capabilities: Object.fromEntries(children) })
}

export interface StackState {
  readonly active: string | null
  readonly drift: typeof drifts[number]
}

/** Whether what was applied last is still what is configured. Pure. */
export function stackState (pointer: StackPointer | null, config: Configured): StackState {
  if (pointer === null) return { active: null, drift: 'none' }
  const active = pointer.active_slug
  const stack = stackCatalog.of(config).get(active)
  if (stack === undefined || contentHash(stack, config) !== pointer.content_hash) return { active, drift: 'modified' }
  return { active, drift: pointer.converge_ok && !pointer.pending ? 'clean' : 'degraded' }
}

const slotDefaults = slotConfigSchema.parse({})

function toldOf (slot: NamedSlotConfig | undefined): unknown {
  return slot === undefined ? null : withoutDefaults(slot, slotDefaults)
}

/** Two levels deep, as slot files are. */
function withoutDefaults (value: object, known: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const entries = Object.entries(value).filter(([key, inner]) => !isDeepStrictEqual(inner ?? null, known[key] ?? null))
  return Object.fromEntries(entries.map(([key, inner]) => {
    const own = known[key]
    return [key, isTable(inner) && isTable(own) ? withoutDefaults(inner, own) : inner]
  }))
}

function isTable (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
