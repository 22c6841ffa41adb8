import { gpuModes, modelCapabilities } from 'svc-gateway/plugin'
import { z } from 'zod'

export const comfyModes = ['generation', 'inference'] as const
export type ComfyMode = typeof comfyModes[number]

const gb = z.number().meta({ description: 'GiB' })
const count = z.int().min(0)
const gauge = z.number().nullable()
const epochMs = z.int().nullable()

export const queueSchema = z.strictObject({ running: count, pending: count })

export const memorySchema = z.strictObject({
  gtt_used_gb: gb,
  gtt_ceil_gb: gb,
  ram_used_gb: gb,
  ram_ceil_gb: gb,
  pressure: z.boolean().meta({ description: 'Five eighths of the GTT pool are in use' })
})
export type Memory = z.output<typeof memorySchema>

export const statusSchema = z.strictObject({
  mode: z.enum(comfyModes).meta({ description: 'Which side has the GPU, or is getting it' }),
  slot: z.string().nullable().meta({ description: 'The image slot that this describes; null if there is none' }),
  reachable: z.boolean(),
  engine: z.enum(['generating', 'running', 'starting', 'stopped']),
  container: z.strictObject({ name: z.string().nullable(), state: z.enum(['running', 'exited', 'absent']) }),
  endpoint: z.string().nullable().meta({ description: 'Such as :8188' }),
  memory: memorySchema.nullable().meta({ description: 'Null if the driver of the GPU does not report it' }),
  queue: queueSchema,
  util: gauge.meta({ description: 'Percent, while it renders' }),
  temp: gauge.meta({ description: 'Degrees Celsius' }),
  clock: gauge.meta({ description: 'GHz' }),
  it_s: gauge.meta({ description: 'Steps per second of the image being generated' }),
  eta: gauge.meta({ description: 'Seconds until its last step' }),
  step: z.strictObject({ value: count, max: count }).nullable(),
  inference: z.strictObject({}).meta({ description: 'Agents that use language models here, each with the state of its model; empty in this release' }),
  inventory: z.strictObject({
    checkpoints: count, diffusion: count, loras: count, vae: count, controlnet: count, upscale: count, text_encoders: count
  }),
  switchover: z.strictObject({ active: z.boolean(), target: z.enum(comfyModes).nullable(), error: z.string().nullable() }),
  arbiter: z.strictObject({
    mode: z.enum(gpuModes),
    pinned: z.boolean(),
    image_slots: z.array(z.string()),
    llm_slots: z.array(z.string()),
    saved_llm_slots: z.array(z.string()).meta({ description: 'Come back with inference mode' }),
    last_img_activity: epochMs,
    idle_restore_minutes: z.int().meta({ description: '0 is never' }),
    idle_restore_at: epochMs
  }).nullable().meta({ description: 'Null without an image slot on a GPU' })
})
export type ComfyStatus = z.output<typeof statusSchema>

export const switchoverBodySchema = z.strictObject({
  mode: z.enum(comfyModes),
  force: z.boolean().optional().meta({ description: 'Even if image mode is pinned or there are jobs; reverses a switch under way' }),
  pin: z.boolean().optional().meta({ description: 'Image mode stays until it is unpinned' })
})
export type SwitchoverBody = z.output<typeof switchoverBodySchema>
export const switchoverSchema = z.strictObject({ status: z.enum(['switching', 'noop']), mode: z.enum(comfyModes) })
export type SwitchoverAnswer = z.output<typeof switchoverSchema>

export const pinBodySchema = z.strictObject({ pinned: z.boolean() })

export const fetchBodySchema = z.union([
  z.strictObject({ auto: z.literal(true).meta({ description: 'Choose what fits the GPU of this host' }) }),
  z.strictObject({
    selections: z.array(z.strictObject({ capability: z.enum(modelCapabilities), family: z.string().min(1) })).min(1).max(20)
  })
])
export type FetchBody = z.output<typeof fetchBodySchema>
export const fetchedSchema = z.strictObject({ jobs: z.array(z.string()).meta({ description: 'Pulls; empty when everything is there' }) })

export const workflowsSchema = z.strictObject({ workflows: z.array(z.strictObject({ name: z.string(), source: z.enum(['primary', 'user']) })) })
export const workflowParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Workflow of GET /api/comfyui/workflows', pattern: '^[A-Za-z0-9._-]{1,200}$', examples: ['portrait'] }) })
export const launchedSchema = z.strictObject({
  status: z.literal('queued'),
  prompt_id: z.string().nullable().meta({ description: 'Id of the job in the engine; null if the engine must start first or is busy' })
})
export type Launched = z.output<typeof launchedSchema>

export const cancelledSchema = z.strictObject({ status: z.literal('cancel_requested') })
export const restartedSchema = z.strictObject({ status: z.literal('restart_requested') })

export const logsQuerySchema = z.strictObject({ tail: z.coerce.number().int().min(1).max(5000).default(60) })
export const logsSchema = z.strictObject({ lines: z.array(z.string()) })
