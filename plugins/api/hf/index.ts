import { core, definePlugin, defineRoute, messageOf } from 'svc-gateway/plugin'
import { hubRef, type HubSearchRow } from '../../services/hub/ref.js'
import { searchQuerySchema, searchSchema } from './schemas.js'

const CACHE_MS = 30_000
const MAX_CACHED = 200

/** `/api/hf`: search on the model hub. A hub that does not answer finds nothing; `problem` says why. */
export default definePlugin({
  name: 'api-hf',
  kind: 'routes',
  apiVersion: 1,
  requires: { clock: core.clock, hub: hubRef },
  register (ctx) {
    const { clock, hub } = ctx.services
    const cache = new Map<string, { readonly at: number, readonly results: HubSearchRow[] }>()
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/api/hf/search',
      tag: 'Models',
      summary: 'Search the model hub',
      schema: { querystring: searchQuerySchema, response: searchSchema },
      handler: async ({ query: { q, type, limit }, signal }) => {
        const words = q.trim()
        if (words === '') return { results: [], cached: false, problem: null }
        const key = JSON.stringify([hub.endpoint, hub.hasToken, words, type, limit])
        const known = cache.get(key)
        if (known !== undefined && clock.monotonic() - known.at < CACHE_MS) {
          return { results: known.results, cached: true, problem: null }
        }
        const options = { limit, signal, ...(type === undefined ? {} : { type }) }
        const found = await hub.search(words, options).catch((error: unknown) => {
          signal.throwIfAborted()
          return messageOf(error)
        })
        if (typeof found === 'string') return { results: [], cached: false, problem: found }
        const results = [...found]
        cache.delete(key)
        cache.set(key, { at: clock.monotonic(), results })
        if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value!)
        return { results, cached: false, problem: null }
      }
    }))
  }
})
