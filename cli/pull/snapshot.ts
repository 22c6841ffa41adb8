import { z } from 'zod'

/** `GET /api/models/{id}/pull/status`, as far as it is shown. */
export const pullSnapshotSchema = z.looseObject({
  id: z.string(),
  model_id: z.string(),
  state: z.string(),
  source: z.string().default('hf'),
  hf_repo: z.string().default(''),
  hf_file: z.string().default(''),
  bytes_downloaded: z.number().default(0),
  bytes_total: z.number().default(0),
  speed_bps: z.number().default(0),
  eta_s: z.number().nullish(),
  message: z.string().default(''),
  error: z.string().nullish(),
  error_code: z.string().nullish(),
  sha256: z.string().nullish(),
  path: z.string().nullish()
})

export type PullSnapshot = z.output<typeof pullSnapshotSchema>

export function isOver ({ state }: PullSnapshot): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled'
}
