import { z } from 'zod'

const text = z.string().nullish()

const capabilitySchema = z.looseObject({ child: z.string(), model: text, device: text, enabled: z.boolean().default(true) })

const rowSchema = z.looseObject({
  slot: z.string(),
  model: text,
  device: text,
  profile: text,
  capabilities: z.array(capabilitySchema).default([])
})
export type StackRow = z.output<typeof rowSchema>

/** A row of `GET /api/stacks`, as far as it is shown. */
export const stackRecordSchema = z.looseObject({
  slug: z.string(),
  name: z.string(),
  description: z.string().default(''),
  author: z.string().default(''),
  tags: z.array(z.string()).default([]),
  slots: z.array(rowSchema).default([]),
  seed: z.boolean().default(false),
  active: z.boolean().default(false),
  drift: z.string().default('none'),
  lacks: z.array(z.string()).default([])
})
export type StackRecord = z.output<typeof stackRecordSchema>

const names = z.array(z.string()).default([])

/** What was done, or would be. */
export const stackPlanSchema = z.looseObject({
  summary: names,
  warnings: names,
  troubles: z.array(z.looseObject({ slot: z.string(), message: z.string(), serves: z.boolean() })).default([])
})

export const appliedSchema = z.looseObject({
  ...stackPlanSchema.shape,
  converged: z.looseObject({
    loaded: names,
    swapped: names,
    reloaded: names,
    unloaded: names,
    capabilities_applied: names,
    errors: z.array(z.looseObject({ target: z.string(), error: z.string() })).default([])
  })
})
export type AppliedStack = z.output<typeof appliedSchema>

/** Where the models of an imported stack are. */
export const modelsSchema = z.looseObject({ present: names, pullable: names, unresolvable: names })
export type StackModels = z.output<typeof modelsSchema>

/** Whether it is the one in force, in words. */
export function driftText ({ active, drift, lacks }: StackRecord): string {
  if (!active) return lacks.length === 0 ? '-' : `not for this host: no ${lacks.join(', ')}`
  if (drift === 'clean') return 'active'
  return drift === 'degraded' ? 'active, not all runs' : 'active, changed since'
}
