import { jobStates } from 'svc-gateway/plugin'
import { z } from 'zod'
import { capabilitySchema } from './schemas.js'

export const pullBodySchema = z.strictObject({
  hf_repo: z.string().optional().meta({ description: '`owner/name`' }),
  hf_filename: z.string().optional().meta({ description: 'A file of it, or the first of a split model' }),
  hf_file: z.string().optional().meta({ description: 'Alias of hf_filename' }),
  revision: z.string().optional().meta({ description: 'Branch, tag or commit; default main' }),
  labels: z.array(capabilitySchema).optional().meta({ description: 'Capability of the model; `vision` also downloads the projector' }),
  capability: capabilitySchema.optional().meta({ description: 'Capability; files go to <store>/<capability>/<id>/' }),
  mmproj_filename: z.string().optional().meta({ description: 'Projector to download with it' })
})

export type PullBody = z.output<typeof pullBodySchema>

const state = z.enum(jobStates)
const bytes = z.int().min(0)

export const pullStartedSchema = z.strictObject({
  id: z.string().meta({ description: 'Of the job' }),
  model_id: z.string(),
  state,
  source: z.string().optional().meta({ description: 'Name of the engine whose own program downloads it, such as `flm`; absent for the hub' }),
  hf_repo: z.string().optional(),
  hf_file: z.string().optional(),
  revision: z.string().optional().meta({ description: 'Commit that is pulled' }),
  bytes_total: bytes,
  resumed: z.literal(true).optional().meta({ description: 'Whether it was already running' })
})

export const pullSchema = z.strictObject({
  id: z.string(),
  model_id: z.string(),
  state,
  source: z.string().meta({ description: '`hf` for the hub, or the name of the engine whose own program downloads it' }),
  hf_repo: z.string().meta({ description: 'Empty, like file and revision, if it does not come from the hub' }),
  hf_file: z.string(),
  revision: z.string(),
  bytes_downloaded: bytes,
  bytes_total: bytes,
  speed_bps: z.number().meta({ description: 'Bytes per second over the last seconds' }),
  eta_s: z.number().nullable().meta({ description: 'Estimated seconds left' }),
  message: z.string().meta({ description: 'Current step; empty while downloading' }),
  started_at: z.number().meta({ description: 'Epoch seconds' }),
  finished_at: z.number().nullable(),
  error: z.string().nullable(),
  error_code: z.string().nullable(),
  sha256: z.string().nullable(),
  path: z.string().nullable(),
  files: z.array(z.strictObject({
    hf_filename: z.string(),
    kind: z.enum(['model', 'mmproj']),
    dest: z.string(),
    bytes_total: bytes,
    bytes_done: bytes,
    sha256: z.string().nullable(),
    expected_sha256: z.string().nullable()
  }))
})

export const pullListSchema = z.strictObject({ pulls: z.array(pullSchema) })
