import { defineRoute, type AnyRoute, type Clock } from 'svc-gateway/plugin'
import { z } from 'zod'
import { hfError, type HubClient } from '../../services/hub/ref.js'
import type { ModelApi } from './model-api.js'
import { variantsOf } from './variants.js'
import { modelTools } from './tools.js'

const CACHE_MS = 300_000
const MAX_CACHED = 64
const EXCERPT = 400

const bodySchema = z.strictObject({
  hf_repo: z.string().meta({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$' }).optional().meta({ description: '`owner/name`' }),
  hf_url: z.string().meta({ minLength: 1 }).optional().meta({ description: 'Address of the repository or of one of its files' })
}).meta({ minProperties: 1 })

const inspectedSchema = z.strictObject({
  repo: z.string(),
  cached: z.boolean(),
  variants: z.array(z.strictObject({
    id: z.string().meta({ description: 'File name for a pull; the first of a split model' }),
    size_bytes: z.int(),
    size: z.string(),
    info: z.string()
  })),
  tags: z.array(z.string()),
  gated: z.boolean().meta({ description: 'Whether its licence must be accepted on its page first' }),
  revision: z.string(),
  metadata: z.strictObject({ license: z.string().nullable(), readme_excerpt: z.string() })
})

type Inspected = Omit<z.output<typeof inspectedSchema>, 'cached'>

/** What a repository of the hub has to offer. Answers are kept for five minutes. */
export function inspectRoute ({ clock, hub }: ModelApi & { readonly clock: Clock }): AnyRoute {
  const cache = new Map<string, { readonly at: number, readonly value: Inspected }>()
  return defineRoute({
    method: 'POST',
    url: '/api/models/inspect',
    summary: 'Models in a repository of the hub',
    schema: { body: bodySchema, response: inspectedSchema },
    example: { hf_repo: 'Qwen/Qwen3-4B-GGUF' },
    tool: modelTools.inspect,
    handler: async ({ body, signal }) => {
      const repo = repoOf(body, hub)
      const key = `${hub.endpoint} ${String(hub.hasToken)} ${repo}`
      const known = cache.get(key)
      if (known !== undefined && clock.monotonic() - known.at < CACHE_MS) return { ...known.value, cached: true }
      const [found, readme] = await Promise.all([hub.repo(repo, { signal }), hub.readme(repo, signal).catch(() => null)])
      const value: Inspected = {
        repo: found.id,
        variants: variantsOf(found),
        tags: [...found.tags],
        gated: found.gated,
        revision: found.commit,
        metadata: { license: found.license, readme_excerpt: (readme ?? '').slice(0, EXCERPT) }
      }
      cache.delete(key)
      cache.set(key, { at: clock.monotonic(), value })
      if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value!)
      return { ...value, cached: false }
    }
  })
}

function repoOf ({ hf_repo: repo, hf_url: url }: z.output<typeof bodySchema>, hub: HubClient): string {
  if (repo !== undefined) return repo.trim()
  if (url === undefined) throw hfError('hf.bad_request', 'give a repository: `hf_repo` as owner/name, or `hf_url`', { param: 'hf_repo' })
  const named = hub.locate(url.trim())
  if (named === null) throw hfError('hf.bad_request', `${url.slice(0, 200)} is not the address of a repository of ${hub.endpoint}`, { param: 'hf_url' })
  return named.repo
}
