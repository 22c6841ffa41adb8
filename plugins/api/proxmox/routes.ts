import {
  defineRoute, type ActivityLog, type AnyRoute, type Clock, type EventBus, type RouteCall
} from 'svc-gateway/plugin'
import type { z } from 'zod'
import { proxmoxError } from './errors.js'
import { askHost } from './host-client.js'
import type { HostWatch } from './host-watch.js'
import { bodySchema, removedSchema, settingsSchema, testBodySchema, testedSchema, type HostSettings } from './schemas.js'
import { tokenRequired, type SettingsFile, type StoredSettings } from './settings-file.js'

export interface ProxmoxApi {
  readonly activity: ActivityLog
  readonly clock: Clock
  readonly events: EventBus
  readonly file: SettingsFile
  readonly watch: HostWatch
  /** Aborts when the plugin stops, with what its callers are told. */
  readonly stopping: AbortSignal
}

type Settings = z.output<typeof settingsSchema>

const PATH = '/api/settings/proxmox'
const unknown = { host: null, port: null, user: null, token_name: null, verify_ssl: null, token_value_set: false } as const

export function proxmoxRoutes (api: ProxmoxApi): AnyRoute[] {
  const { activity, clock, events, file, watch, stopping } = api
  const rowOf = ({ actor, requestId }: Pick<RouteCall, 'actor' | 'requestId'>, action: string) => ({
    category: 'settings', action, target: 'proxmox.json', actor, request_id: requestId
  })
  return [
    defineRoute({
      method: 'GET',
      url: PATH,
      summary: 'The configured Proxmox host of this machine, and its state',
      description: 'Queries the host if the last answer is older than 30 seconds, waiting up to three seconds.',
      schema: { response: settingsSchema },
      handler: async () => shown(api, await file.read())
    }),
    defineRoute({
      method: 'PUT',
      url: PATH,
      summary: 'Configure the Proxmox host',
      description: 'Without `token_value` the stored one is kept. The settings are saved even if the host does not answer; see `status`.',
      schema: { body: bodySchema, response: settingsSchema },
      example: { host: '192.168.1.10', user: 'svc@pve', token_name: 'gateway', token_value: '00000000-0000-0000-0000-000000000000' },
      bodyError: proxmoxError.kind('proxmox.config_invalid'),
      handler: async call => {
        const settings = await activity.audited(rowOf(call, 'settings.proxmox_save'), async note => {
          const before = facts(await file.read())
          const saved = await file.save(call.body)
          note({ before, after: facts({ kind: 'ok', settings: saved }) })
          return saved
        })
        await watch.forget()
        const { host, port } = settings
        events.emit({ type: 'system.proxmox_save', source: 'system', message: `the Proxmox host is ${host}:${port}`, data: { host, port } })
        return await shown(api, { kind: 'ok', settings })
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: PATH,
      summary: 'Remove the Proxmox host and its token',
      schema: { response: removedSchema },
      handler: async call => {
        const existed = await activity.audited(rowOf(call, 'settings.proxmox_remove'), async note => {
          note({ before: facts(await file.read()) })
          return await file.remove()
        })
        await watch.forget()
        if (existed) events.emit({ type: 'system.proxmox_remove', source: 'system', message: 'the Proxmox host was removed' })
        return { configured: false as const, existed }
      }
    }),
    defineRoute({
      method: 'POST',
      url: `${PATH}/test`,
      summary: 'Test a Proxmox host; nothing is saved',
      description: '`token_value` is required: the stored token is never sent by a test.',
      schema: { body: testBodySchema, response: testedSchema },
      example: { host: '192.168.1.10', user: 'svc@pve', token_name: 'gateway', token_value: '00000000-0000-0000-0000-000000000000' },
      bodyError: proxmoxError.kind('proxmox.config_invalid'),
      handler: async ({ body, signal }) => {
        const { token_value } = body
        if (token_value === undefined) throw tokenRequired('a test does not use the stored token')
        const answer = await askHost({ clock, settings: { ...body, token_value }, signal: AbortSignal.any([signal, stopping]) })
        if (!answer.ok) return { ok: false as const, error: answer.error }
        const { node, host_mem_total_mb, tenants_total } = answer
        return { ok: true as const, node, host_mem_total_mb, tenants_total }
      }
    })
  ]
}

async function shown ({ watch, stopping }: ProxmoxApi, stored: StoredSettings): Promise<Settings> {
  if (stored.kind === 'none') return { configured: false, ...unknown, status: { configured: false } }
  if (stored.kind === 'broken') return { configured: true, ...unknown, status: { configured: true, ok: false, error: stored.problem } }
  const status = await watch.current(stored.settings).catch(() => {
    stopping.throwIfAborted()
    return { configured: true as const, ok: false as const, error: 'the settings were changed during the query; try again' }
  })
  return { configured: true, ...facts(stored)!, token_value_set: true, status }
}

/** The settings without the token. */
function facts (stored: StoredSettings): Omit<HostSettings, 'token_value'> | null {
  if (stored.kind !== 'ok') return null
  const { host, port, user, token_name, verify_ssl } = stored.settings
  return { host, port, user, token_name, verify_ssl }
}
