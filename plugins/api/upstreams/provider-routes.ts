import { defineRoute, isSvcError, messageOf, type AnyRoute, type SvcError, type UpstreamTemplate } from 'svc-gateway/plugin'
import { z } from 'zod'
import { providerError } from './errors.js'
import { credentialsBodySchema, credentialsSchema, nameParamsSchema, templateSchema, upstreamObjectSchema } from './schemas.js'
import type { UpstreamApi } from './upstream-api.js'
import { CUSTOM } from './upstream-change.js'
import { upstreamTools } from './tools.js'

/** Eight bullets, however long the key is. */
const MASKED = '••••••••'

/** External providers: what there is, what there could be, and their keys. */
export function providerRoutes (api: UpstreamApi): AnyRoute[] {
  const { config, upstreams } = api.services
  return [
    defineRoute({
      method: 'GET',
      url: '/api/providers',
      tag: 'Upstreams',
      summary: 'List remote providers, without their keys',
      schema: { response: z.array(upstreamObjectSchema) },
      tool: upstreamTools.providers,
      handler: () => api.remotes()
    }),
    defineRoute({
      method: 'GET',
      url: '/api/providers/catalog',
      tag: 'Upstreams',
      summary: 'Templates for remote providers',
      schema: { response: z.array(templateSchema) },
      handler: () => [...upstreams.templates.map(templateRow), custom]
    }),
    defineRoute({
      method: 'POST',
      url: '/api/providers/:name/credentials',
      tag: 'Upstreams',
      summary: 'Write the key of a provider to api.env',
      schema: { params: nameParamsSchema, body: credentialsBodySchema, response: credentialsSchema },
      example: { key: 'OPENAI_API_KEY', value: 'sk-your-key' },
      tool: upstreamTools.credential,
      handler: call => {
        const { params: { name }, body: { key, value } } = call
        const row = api.status(name).config
        const { auth_value_env: env } = row
        if (env === '') throw notWritten(`'${name}' has no variable for its key; set \`auth_value_env\` first`, name)
        if (key !== env) throw notWritten(`the key of '${name}' is read from ${env}, and no other variable`, name)
        if (value.trim() === '') throw notWritten('a key must not be empty; DELETE /api/secrets/{name} removes one', name)
        api.requireUnshared(row)
        return api.audited(call, 'credentials', name, async () => {
          await config.setSecret(key, value).catch((error: unknown) => {
            throw notWritten(isSvcError(error) ? error.message : messageOf(error), name, error)
          })
          return { ok: true as const, name, key, value: MASKED, hint: `POST /api/upstreams/${name}/test tests whether it is accepted` }
        })
      }
    })
  ]
}

const custom = {
  id: CUSTOM,
  name: 'Anything that speaks the OpenAI format',
  base_url: null,
  auth: 'bearer',
  auth_header_name: '',
  auth_value_env: '',
  category: 'custom',
  capabilities: []
}

function templateRow (template: UpstreamTemplate): z.output<typeof templateSchema> {
  const { id, title, url, auth_style: auth, auth_header: header, auth_value_env: env, category, capabilities } = template
  return {
    id, name: title, base_url: url, auth, auth_header_name: header, auth_value_env: env, category, capabilities: [...capabilities]
  }
}

function notWritten (why: string, upstream: string, cause?: unknown): SvcError {
  return providerError('provider.credential_write_failed', `the key was not written: ${why}`, { details: { upstream }, cause })
}
