import type { ConfigFileDefinition, RowWorld } from 'svc-gateway/plugin'
import { z } from 'zod'
import { stackSchema, type Stack, type StackSlot } from './schema.js'
import { seedStacks } from './seeds.js'

/** `[stack.<slug>]`. */
export const stacksFile = {
  file: 'stacks.toml',
  schema: z.strictObject({ stack: z.record(z.string(), stackSchema).default({}) }),
  rows: { key: 'stack', schema: stackSchema, builtin: new Set(seedStacks.keys()), check: checkFlags }
} as const satisfies ConfigFileDefinition

/** Flags of its rows, and of the profiles that it brings along, that the gateway owns. */
function checkFlags (_slug: string, given: unknown, { slots, flags }: RowWorld): void {
  const stack = given as Stack
  for (const [i, row] of stack.slots.entries()) {
    flags.slot(row.server_extra_args ?? [], wishOf(row, slots.get(row.slot)?.provider), {
      slot: row.slot, what: `server_extra_args of row '${row.slot}'`, param: `slots.${i}.server_extra_args`
    })
  }
  for (const [name, profile] of Object.entries(stack.profiles)) flags.profile(name, profile, `profiles.${name}.flags`)
}

/** The engine that a row gets when it is applied: its own word, that of the slot which is there, else what it implies. */
function wishOf ({ provider, type, device, profile }: StackSlot, present: string | undefined): Parameters<RowWorld['flags']['slot']>[1] {
  return { provider: provider ?? present ?? null, type: type ?? 'llm', device: device ?? undefined, profile }
}
