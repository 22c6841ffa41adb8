import { z } from 'zod'
import { channels, installationKinds } from '../../services/updates/ref.js'

const channelField = z.enum(channels).meta({ description: 'Releases that updates come from' })

export const stateSchema = z.strictObject({
  svc: z.strictObject({
    current: z.string().meta({ description: 'The release that runs' }),
    available: z.string().nullable().meta({ description: 'A newer one that the last check found' }),
    channel: channelField
  }),
  flm: z.strictObject({
    current: z.string().nullable().meta({ description: 'Tag of the image of the NPU runtime; null where the manifest of images has none' }),
    source: z.literal('toolbox-image')
  }),
  autoCheck: z.boolean().meta({ description: 'The channel is asked once a day' }),
  installation: z.strictObject({
    kind: z.enum(installationKinds).meta({ description: 'tree: it updates itself; the others do not' }),
    advice: z.string().nullable().meta({ description: 'What to do instead; null for a tree' })
  })
}).meta({ title: 'UpdateState' })

export const checkQuerySchema = z.strictObject({
  version: z.string().max(64).optional().meta({ description: 'Ask for this version in place of the newest' })
})

export const checkSchema = z.strictObject({
  current: z.string(),
  latest: z.string().meta({ description: 'Version that the channel names' }),
  channel: channelField,
  update_available: z.boolean(),
  blocked: z.string().nullable().meta({ description: 'Why a release of the channel would not be installed' }),
  manifest_url: z.string(),
  manifest: z.record(z.string(), z.unknown()).meta({ description: 'What the channel says of the release' })
}).meta({ title: 'UpdateCheck' })

export const channelSchema = z.strictObject({ channel: channelField }).meta({ title: 'UpdateChannel' })

/** What is wrong is told with a code of its own, so this schema documents and checks nothing. */
export const channelBodySchema = z.record(z.string(), z.unknown())
  .meta({ type: 'object', properties: { channel: { type: 'string', enum: [...channels] } }, required: ['channel'], additionalProperties: false })
