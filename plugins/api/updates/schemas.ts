import { z } from 'zod'
import { channels, installationKinds, updateKinds, updatePhases, updateStates } from '../../services/updates/ref.js'

const channelField = z.enum(channels).meta({ description: 'Release channel of updates' })

export const stateSchema = z.strictObject({
  svc: z.strictObject({
    current: z.string().meta({ description: 'The running release' }),
    available: z.string().nullable().meta({ description: 'Newer release found by the last check' }),
    channel: channelField
  }),
  flm: z.strictObject({
    current: z.string().nullable().meta({ description: 'Tag of the image of the NPU runtime; null if the manifest has none' }),
    source: z.literal('toolbox-image')
  }),
  autoCheck: z.boolean().meta({ description: 'Whether the channel is checked once a day' }),
  installation: z.strictObject({
    kind: z.enum(installationKinds).meta({ description: 'tree: updates itself; the others do not' }),
    advice: z.string().nullable().meta({ description: 'What to do instead; null for a tree' })
  })
}).meta({ title: 'UpdateState' })

export const checkQuerySchema = z.strictObject({
  version: z.string().max(64).optional().meta({ description: 'Check for this version instead of the newest' })
})

export const checkSchema = z.strictObject({
  current: z.string(),
  latest: z.string().meta({ description: 'Version in the channel' }),
  channel: channelField,
  update_available: z.boolean(),
  blocked: z.string().nullable().meta({ description: 'Why a release of the channel would not be installed' }),
  manifest_url: z.string(),
  manifest: z.record(z.string(), z.unknown()).meta({ description: 'Manifest of the release in the channel' })
}).meta({ title: 'UpdateCheck' })

export const channelSchema = z.strictObject({ channel: channelField }).meta({ title: 'UpdateChannel' })

/** What is wrong is told with a code of its own, so this schema documents and checks nothing. */
export const channelBodySchema = z.record(z.string(), z.unknown())
  .meta({ type: 'object', properties: { channel: { type: 'string', enum: [...channels] } }, required: ['channel'], additionalProperties: false })

export const applyBodySchema = z.strictObject({
  version: z.string().max(64).optional().meta({ description: 'Version to install instead of the newest; older ones must be requested here' })
}).meta({ title: 'UpdateOrder' })

export const jobParamsSchema = z.strictObject({
  id: z.string().max(64).meta({ description: 'Id of an update', pattern: '^[0-9a-f]{12}$', examples: ['0123456789ab'] })
})

export const jobSchema = z.strictObject({
  id: z.string().meta({ description: '12 hex digits' }),
  kind: z.enum(updateKinds),
  state: z.enum(updateStates).meta({ description: '`prepared` waits for a restart of the gateway; `applied` and `failed` are final' }),
  phase: z.enum(updatePhases),
  channel: z.string(),
  version: z.string().nullable().meta({ description: 'Requested version; null is the newest' }),
  resolved_version: z.string().nullable(),
  progress: z.number().nullable().meta({ description: 'Progress of the download, 0 to 1' }),
  notes: z.array(z.string()),
  restarted: z.boolean(),
  restart_required: z.boolean().meta({ description: 'Whether the gateway must be restarted manually' }),
  error: z.string().nullable(),
  error_code: z.string().nullable(),
  created_at: z.string(),
  updated_at: z.string()
}).meta({ title: 'UpdateJob' })

export const slotDriftSchema = z.strictObject({
  count: z.int(),
  slots: z.array(z.strictObject({
    slot: z.string(),
    diffs: z.array(z.strictObject({
      key: z.string().meta({ description: 'A flag, `env.NAME`, or a part of the launch such as `image`' }),
      running: z.string().nullable().meta({ description: 'Value that its engine was started with; null: none' }),
      rendered: z.string().nullable().meta({ description: 'Value that it would be started with now; null: none' })
    })).meta({ description: 'Empty if unknown, as for a slot that could not be started now' })
  }))
}).meta({ title: 'SlotDrift' })

export const restartBodySchema = z.strictObject({
  slots: z.array(z.string().max(64)).max(1000).optional().meta({ description: 'Only these; default is all that have drifted' })
}).meta({ title: 'SlotRestart' })

export const restartedSchema = z.strictObject({
  restarted: z.array(z.string()),
  failed: z.array(z.strictObject({ slot: z.string(), error: z.string() })),
  count: z.int().meta({ description: 'Number of restarted slots' })
}).meta({ title: 'SlotsRestarted' })

export const rolledBackSchema = z.strictObject({
  rolled_back: z.literal(true),
  channel: channelField,
  rolled_back_to: z.string().meta({ description: 'Version that starts next' }),
  previous_now: z.string().meta({ description: 'Version that a further rollback goes to' }),
  schema_warning: z.string().nullable().meta({ description: 'Warning if the state database has another version than this release' }),
  running_version: z.string(),
  restart_required: z.boolean(),
  job: z.string().meta({ description: 'Shows the progress' })
}).meta({ title: 'UpdateRollback' })
