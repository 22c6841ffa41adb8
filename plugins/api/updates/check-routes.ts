import { defineRoute, type ActivityLog, type AnyRoute, type ConfigService, type GatewayInfo, type SlotService } from 'svc-gateway/plugin'
import { channels, type Channel, type Updates } from '../../services/updates/ref.js'
import { channelError } from './errors.js'
import { channelBodySchema, channelSchema, checkQuerySchema, checkSchema, stateSchema } from './schemas.js'

export interface UpdatesApi {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly info: GatewayInfo
  readonly slots: SlotService
  readonly updates: Updates
}

export const tag = 'Updates'

export function checkRoutes ({ activity, config, info, updates }: UpdatesApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/updates/state',
      tag,
      summary: 'The running release, its channel, and whether this installation updates itself',
      description: 'Does not query the channel: `available` is the result of the last check.',
      schema: { response: stateSchema },
      handler: async () => {
        const { kind, advice } = await updates.standing()
        return {
          svc: { current: info.version, available: updates.available, channel: updates.channel },
          flm: { current: tagOf(config.snapshot.manifest.toolbox_images['npu-rt']?.tag), source: 'toolbox-image' as const },
          autoCheck: updates.autoCheck,
          installation: { kind, advice }
        }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/updates/check',
      tag,
      summary: 'Check the channel for a release',
      schema: { querystring: checkQuerySchema, response: checkSchema },
      handler: async ({ query, signal }) => {
        const { available, manifestUrl, ...found } = await updates.check(query.version ?? null, signal)
        return { ...found, update_available: available, manifest_url: manifestUrl }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/updates/channel',
      tag,
      summary: 'Release channel of updates',
      schema: { response: channelSchema },
      handler: () => ({ channel: updates.channel })
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/updates/channel',
      tag,
      summary: 'Choose the release channel of updates',
      description: 'Kept as `[telemetry] channel`.',
      schema: { body: channelBodySchema, response: channelSchema },
      bodyError: channelError.kind('channel.invalid'),
      example: { channel: 'stable' },
      handler: ({ body, actor, requestId }) => {
        const channel = checkedChannel(body)
        const row = { category: 'updates', action: 'updates.channel', target: channel, actor, request_id: requestId }
        return activity.audited(row, async note => {
          note({ before: updates.channel, after: channel })
          await config.patchSvc({ telemetry: { channel } })
          return { channel }
        })
      }
    })
  ]
}

/** Throws `channel.invalid` or `channel.unknown`. */
function checkedChannel (body: Readonly<Record<string, unknown>>): Channel {
  const { channel, ...more } = body
  const [other] = Object.keys(more)
  if (other !== undefined) throw channelError('channel.invalid', `unknown key ${JSON.stringify(other.slice(0, 80))} in the choice of a channel`, { param: other.slice(0, 80) })
  if (typeof channel !== 'string' || channel === '') throw channelError('channel.invalid', 'set a channel: {"channel": "stable"}', { param: 'channel' })
  const known = channels.find(name => name === channel)
  if (known !== undefined) return known
  throw channelError('channel.unknown', `there is no channel '${channel.slice(0, 80)}'; there are ${channels.join(', ')}`, { param: 'channel', details: { known: [...channels] } })
}

/** The tag in the name of an image. Pure. */
function tagOf (image: string | undefined): string | null {
  return /:([\w.-]+)(?:@.*)?$/.exec(image ?? '')?.[1] ?? null
}
