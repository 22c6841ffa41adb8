import { defineRoute, upstreamSchema, type AnyRoute, type ExternalProvider } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { KeyUse } from './key-binding.js'
import { createBodySchema, deletedSchema, nameParamsSchema, patchBodySchema, testedSchema, upstreamObjectSchema, type PatchBody } from './schemas.js'
import type { UpstreamApi } from './upstream-api.js'
import { checkFallback, gatewayBase, guardSlotBacked, newRow, providerPatch, requireFreeName, requireOwnName } from './upstream-change.js'
import { requireOtherGateway } from './other-gateway.js'
import { upstreamTools } from './tools.js'

/** Upstreams as rows of upstreams.toml and providers.toml, and how they are. */
export function upstreamRoutes (api: UpstreamApi): AnyRoute[] {
  const { config, upstreams } = api.services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/upstreams',
      summary: 'List upstreams of both files, without their keys',
      schema: { response: z.array(upstreamObjectSchema) },
      tool: upstreamTools.list,
      handler: () => api.list()
    }),
    defineRoute({
      method: 'POST',
      url: '/api/upstreams',
      summary: 'Add an upstream to upstreams.toml',
      description: 'Its models can be requested at once. Send the key as `auth_value`, or to POST /api/providers/{name}/credentials. Without it, an existing secret is not sent to a new address. With `svc` the address is checked first: this gateway itself, and anything that is not a gateway, is refused; one that does not answer is accepted.',
      schema: { body: createBodySchema, response: upstreamObjectSchema },
      example: { name: 'openai', url: 'https://api.openai.com/v1', auth_value_env: 'OPENAI_API_KEY' },
      status: 201,
      handler: call => api.audited(call, 'create', call.body.name, async note => {
        const { auth_value: value, ...body } = call.body
        const { name } = body
        const row = newRow(body, upstreams.templates)
        // before its key is written, which a refused one would leave behind
        if (row.svc === true) await requireOtherGateway(upstreamSchema.parse({ ...row, name }), api.services, call.signal)
        await api.bindKey({ ...row, name }, value)
        await config.change(async draft => {
          await requireFreeName(draft, name, upstreams.get(name) !== undefined)
          await draft.upstreams.create(row)
        })
        note({ after: api.object(name) })
        return api.object(name)
      })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/upstreams/:name',
      summary: 'One upstream',
      schema: { params: nameParamsSchema, response: upstreamObjectSchema },
      handler: ({ params }) => api.object(params.name)
    }),
    defineRoute({
      method: 'PATCH',
      url: '/api/upstreams/:name',
      summary: 'Change an upstream in the file that defines it',
      description: 'Omitted fields stay, with their comments. Another address requires the key again, as `auth_value`. Running requests are not affected.',
      schema: { params: nameParamsSchema, body: patchBodySchema, response: upstreamObjectSchema },
      example: { enabled: false },
      handler: call => {
        const { params: { name }, body: { auth_value: value, ...asked } } = call
        requireOwnName(name)
        const { source, config: present } = api.status(name)
        const isSvc = asked.svc ?? present.svc
        const becomes = isSvc && (asked.url !== undefined || asked.svc === true)
        const body = becomes ? { ...asked, url: gatewayBase(asked.url ?? present.url) } : asked
        if (present.kind === 'slot') guardSlotBacked(name, body)
        checkFallback(name, body.fallback)
        return api.audited(call, 'edit', name, async note => {
          note({ before: api.object(name) })
          if (becomes) await requireOtherGateway({ ...present, ...defined(body) }, api.services, call.signal)
          await api.bindKey({ ...present, ...defined(body) }, value)
          await config.change<unknown>(draft => source === 'upstreams.toml'
            ? draft.upstreams.patch(name, body)
            : draft.providers.patch(rowId(name, config.snapshot.providers), providerPatch(name, body)))
          note({ after: api.object(name) })
          return api.object(name)
        })
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/upstreams/:name',
      summary: 'Remove an upstream from its file',
      schema: { params: nameParamsSchema, response: deletedSchema },
      handler: call => {
        const { name } = call.params
        requireOwnName(name)
        const { source } = api.status(name)
        const { auth_value_env: env, auth_key_present: hasKey } = api.object(name)
        return api.audited(call, 'delete', name, async note => {
          note({ before: api.object(name) })
          await config.change(draft => source === 'upstreams.toml'
            ? draft.upstreams.delete(name)
            : draft.providers.delete(rowId(name, config.snapshot.providers)))
          const hint = upstreams.get(name) !== undefined ? `an entry of providers.toml with the name '${name}' applies now`
            : hasKey ? `its key ${env} is kept` : null
          return { ok: true as const, name, removed_from_toml: true, hint }
        })
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/upstreams/:name/test',
      summary: 'Test an upstream by asking for its models',
      description: 'Even while it is not used after failures; a valid answer ends that.',
      schema: { params: nameParamsSchema, response: testedSchema },
      handler: ({ params, signal }) => upstreams.ask(params.name, signal)
    }),
    defineRoute({
      method: 'POST',
      url: '/api/upstreams/:name/refresh',
      summary: 'Refresh the model list of an upstream',
      description: 'If the list cannot be fetched, the old one stays; see `error`.',
      schema: { params: nameParamsSchema, response: upstreamObjectSchema },
      handler: async ({ params: { name }, signal }) => {
        await upstreams.ask(name, signal)
        return api.object(name)
      }
    })
  ]
}

function defined ({ url, auth_style, auth_value_env }: PatchBody): Partial<KeyUse> {
  return {
    ...(url === undefined ? {} : { url }),
    ...(auth_style === undefined ? {} : { auth_style }),
    ...(auth_value_env === undefined ? {} : { auth_value_env })
  }
}

/** What tells the row from others in providers.toml: its name there, or the catalogue id that made the name. */
function rowId (name: string, providers: readonly ExternalProvider[]): string {
  const row = providers.findLast(({ name: own, catalog_id: id }) => (own ?? id.replaceAll('_', '-')) === name)
  return row?.name ?? row?.catalog_id ?? name
}
