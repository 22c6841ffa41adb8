import { core, definePlugin, type ConfigService } from 'svc-gateway/plugin'
import { createHubClient } from './client.js'
import { hfError } from './errors.js'
import { hubRef } from './ref.js'
import type { HubSettings } from './transport.js'

const DEFAULT_ENDPOINT = 'https://huggingface.co'

/** The model hub: search, repositories, files. HF_ENDPOINT and HF_TOKEN are read from api.env, else from the environment. */
export default definePlugin({
  name: 'hub',
  kind: 'service',
  apiVersion: 1,
  errors: hfError,
  requires: { clock: core.clock, config: core.config },
  provides: [hubRef],
  register (ctx) {
    const { clock, config } = ctx.services
    const client = createHubClient({ clock, settings: () => settingsOf(config), setting: name => config.secret(name) })
    ctx.provide(hubRef, client)
    ctx.addHealth(() => ({ endpoint: client.endpoint, token: client.hasToken }))
    ctx.onStop(() => client.close())
  }
})

function settingsOf (config: ConfigService): HubSettings {
  const token = [config.secret('HF_TOKEN'), config.secret('HUGGING_FACE_HUB_TOKEN')].map(value => value?.trim()).find(value => value)
  return { endpoint: endpointOf(config.secret('HF_ENDPOINT')?.trim() ?? ''), token: token ?? null }
}

/**
 * What is no address would fail every call with a riddle: the hub's own is taken then, and health shows it. A password in
 * it would be shown too, so it is left out; the token is the way to log in.
 */
function endpointOf (given: string): string {
  if (!/^https?:\/\//.test(given) || !URL.canParse(given)) return DEFAULT_ENDPOINT
  const { origin, pathname } = new URL(given)
  return `${origin}${pathname}`.replace(/(?<!\/)\/+$/, '')
}
