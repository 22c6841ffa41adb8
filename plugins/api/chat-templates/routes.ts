import { defineRoute, messageOf, type ActivityLog, type AnyRoute, type ConfigService, type RouteCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import { bundledTemplates } from './bundled.js'
import { chatTemplateError } from './errors.js'
import { idParamsSchema, lintBodySchema, lintSchema, putBodySchema, templateEntrySchema, templateSchema } from './schemas.js'
import type { TemplateCatalog } from './template-catalog.js'
import { TEMPLATE_ID } from './template-files.js'

export interface TemplateApi {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly catalog: TemplateCatalog
}

/** `/api/chat-templates`. */
export function templateRoutes (api: TemplateApi): AnyRoute[] {
  const { catalog } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/chat-templates',
      summary: 'List chat templates, each checked on sample conversations',
      schema: { response: z.array(templateEntrySchema) },
      handler: () => catalog.list()
    }),
    defineRoute({
      method: 'GET',
      url: '/api/chat-templates/:id',
      summary: 'One chat template with its text',
      schema: { params: idParamsSchema, response: templateSchema },
      handler: async ({ params: { id } }) => await catalog.find(id) ?? notFound(id)
    }),
    defineRoute({
      method: 'POST',
      url: '/api/chat-templates',
      summary: 'Add or replace a chat template',
      description: 'Written even if the check finds a problem; see `error`. Slots use it from their next start.',
      schema: { body: putBodySchema, response: templateEntrySchema },
      example: { id: 'short', content: '{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}' },
      handler: async call => {
        const { id, content } = call.body
        requireId(id)
        return await audited(api, call, 'write', id, () => catalog.put(id, content))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/chat-templates/lint',
      summary: 'Check a chat template without writing it',
      schema: { body: lintBodySchema, response: lintSchema },
      example: { content: '{% for message in messages %}{{ message.content }}{% endfor %}' },
      handler: ({ body }) => catalog.lint(body.content)
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/chat-templates/:id',
      summary: 'Delete a chat template; a bundled one is reset',
      schema: { params: idParamsSchema },
      handler: async call => {
        const { id } = call.params
        const slots = [...api.config.snapshot.slots.values()].filter(slot => slot.chat_template === id).map(slot => slot.name)
        if (slots.length > 0 && !bundledTemplates.has(id)) throw inUse(id, slots)
        await audited(api, call, 'delete', id, async () => {
          if (!await catalog.remove(id)) notFound(id)
        })
      }
    })
  ]
}

async function audited<T> ({ activity }: TemplateApi, call: Pick<RouteCall, 'actor' | 'requestId'>, action: string, id: string, work: () => Promise<T>): Promise<T> {
  const row = { category: 'chat_template', action: `chat_template.${action}`, target: id, actor: call.actor, request_id: call.requestId }
  return await activity.audited(row, () => work().catch((error: unknown) => { throw asWriteFailure(error, id) }))
}

function requireId (id: string): void {
  if (TEMPLATE_ID.test(id) && id !== 'auto') return
  throw chatTemplateError('chat_template.invalid_id',
    'a template\'s id has lowercase letters, digits, _ and -, starts with a letter or digit, has at most 41 characters, and is not `auto`',
    { param: 'id', details: { id } })
}

function notFound (id: string): never {
  throw chatTemplateError('chat_template.not_found', `no such chat template: '${id}'; see GET /api/chat-templates`, { param: 'id', details: { id } })
}

function inUse (id: string, slots: readonly string[]): Error {
  return chatTemplateError('chat_template.in_use', `chat template '${id}' is used by ${slots.join(', ')}; give them another one first`, { details: { id, slots } })
}

function asWriteFailure (error: unknown, id: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall === undefined) return error
  return chatTemplateError('chat_template.write_failed', `chat template '${id}' cannot be written to the model store: ${messageOf(error)}`,
    { details: { id, reason: code ?? '' }, cause: error })
}
