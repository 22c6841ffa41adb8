import { core, definePlugin, defineRoute, type ProviderCatalog, type SlotService } from 'svc-gateway/plugin'
import { urlsSchema } from './schemas.js'
import { discoverUrls } from './urls.js'

/** `/api/config`: where a dashboard finds the services around the gateway; public. */
export default definePlugin({
  name: 'api-config',
  kind: 'routes',
  apiVersion: 1,
  requires: { config: core.config, info: core.info, providers: core.providers, slots: core.slots },
  register (ctx) {
    const { config, info, providers, slots } = ctx.services
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/config/urls',
      tag: 'Settings',
      summary: 'Addresses of the gateway and its companions, from the caller\'s point of view',
      schema: { response: urlsSchema },
      handler: ({ request }) => discoverUrls({
        headers: request.headers,
        port: info.baseUrl === null ? config.snapshot.svc.server.port : Number(new URL(info.baseUrl).port),
        variable: name => config.secret(name),
        imagePort: imagePort(slots, providers)
      })
    }))
  }
})

const USUAL_PORT = 8188

/** Of the image slot that runs, else the one that it would get. */
function imagePort (slots: SlotService, providers: ProviderCatalog): number {
  const images = slots.names().filter(name => slots.config(name).type === 'image' && slots.config(name).enabled)
  const known = images.map(name => slots.status(name).port).find(port => port !== null)
  const usual = providers.list().find(({ slotTypes, reservedPorts = [] }) => slotTypes.includes('image') && reservedPorts.length > 0)
  return known ?? usual?.reservedPorts?.[0] ?? USUAL_PORT
}
