import { z } from 'zod'

const text = z.string().nullish()

export const slotOutcomeSchema = z.looseObject({
  slot: z.string(),
  model_id: z.string(),
  created: z.boolean(),
  device: text,
  profile: text,
  pull_job_id: text,
  skipped: text,
  detail: text,
  error: text
})
export type SlotOutcome = z.output<typeof slotOutcomeSchema>

/** `POST /api/install/apply` and `apply-selections`, as far as it is shown. */
export const outcomeSchema = z.looseObject({
  tier: z.string().optional(),
  model_ids: z.array(z.string()),
  slots: z.array(slotOutcomeSchema),
  extensions: z.array(z.looseObject({
    ext_id: z.string(), installed: z.boolean(), skipped: text, error: text, job: text
  })).default([]),
  warnings: z.array(z.string()).default([])
})
export type Outcome = z.output<typeof outcomeSchema>

/** Models that are on their way, each once. Pure. */
export function pulledModels ({ slots }: Pick<Outcome, 'slots'>): readonly string[] {
  return [...new Set(slots.filter(({ pull_job_id: job }) => job != null).map(({ model_id: id }) => id))]
}

/** What became of a slot, in a few words. Pure. */
export function statusText ({ created, skipped, detail, error, pull_job_id: job }: SlotOutcome): string {
  if (error != null) return `failed: ${error}`
  if (skipped != null) return `skipped: ${detail ?? skipped}`
  const what = created ? 'made' : 'there already'
  return job == null ? what : `${what}, waits for its model`
}

/** Extensions whose installation goes on. Pure. */
export function extensionsUnderWay ({ extensions }: Pick<Outcome, 'extensions'>): readonly string[] {
  return extensions.filter(({ job }) => job != null).map(({ ext_id: id }) => id)
}

/** What became of an extension, in words. Pure. */
export function extensionText ({ ext_id: id, installed, skipped, error, job }: Outcome['extensions'][number]): string {
  if (installed) return error == null ? `${id} is installed and runs` : `${id} is installed: ${error}`
  if (error != null) return `${id} is not installed: ${error}`
  if (job != null) return `${id} is being installed`
  return `${id} is skipped: ${skipReasons[skipped ?? ''] ?? skipped ?? 'no reason given'}`
}

const skipReasons: Readonly<Record<string, string>> = {
  unknown_extension: 'it is unknown',
  not_asked_for: 'it is installed on request: `svc service install`, or `svc agent install` for an agent',
  made_with_its_slot: 'it is a slot that already exists'
}
