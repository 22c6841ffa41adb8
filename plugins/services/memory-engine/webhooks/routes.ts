import type { Core } from '../core.js'
import { needBank } from '../store/bank-table.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { bool, int, listOf, maybe, object, oneOf, optional, readBody, readQuery, required, text } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'
import { targetProblem } from './target.js'
import { httpConfig, plainHttp } from './http-config.js'
import { WebhookTable, type Delivery, type Webhook } from './webhook-table.js'

const eventTypes = listOf(oneOf('consolidation.completed', 'retain.completed', 'memory_defense.triggered'))
const created = object({
  url: required(text), secret: maybe(text), event_types: optional(
    eventTypes, ['consolidation.completed']
  ), enabled: optional(bool, true),
  http_config: optional(httpConfig, plainHttp)
})
const changed = object({
  url: maybe(text), secret: maybe(text), event_types: maybe(eventTypes), enabled: maybe(bool), http_config: maybe(httpConfig)
})

const create: Handler = ({ core, params, body, headers, ignored }) => {
  const { url, secret, event_types: types, enabled, http_config: config } = readBody(body, headers, ignored, created)
  mustBeAllowed(url)
  const bank = needBank(core.store, params.bank_id!)
  return json(
    view(params.bank_id!, tableOf(core).add(bank.seq, { url, secret, eventTypes: types, enabled, httpConfig: config })), 201
  )
}

const list: Handler = ({ core, params, query, ignored }) => {
  const { limit, offset } = readQuery(query, ignored, {
    limit: optional(int({ min: 1, max: 1000 }), 100), offset: optional(int({ min: 0 }), 0)
  })
  const { total, webhooks } = tableOf(core).page(needBank(core.store, params.bank_id!).seq, { limit, offset })
  return json({ items: webhooks.map(each => view(params.bank_id!, each)), total, limit, offset })
}

const update: Handler = ({ core, params, body, headers, ignored }) => {
  const { url, secret, event_types: types, enabled, http_config: config } = readBody(body, headers, ignored, changed)
  if (url !== null) mustBeAllowed(url)
  const webhook = tableOf(core).update(needBank(core.store, params.bank_id!).seq, params.webhook_id!, {
    ...url !== null && { url }, ...secret !== null && { secret }, ...types !== null && { eventTypes: types },
    ...enabled !== null && { enabled }, ...config !== null && { httpConfig: config }
  })
  if (webhook === null) throw notFound()
  return json(view(params.bank_id!, webhook))
}

const remove: Handler = ({ core, params }) => {
  if (!tableOf(core).delete(needBank(core.store, params.bank_id!).seq, params.webhook_id!)) throw notFound()
  return json({ success: true, message: null, deleted_count: null })
}

const deliveries: Handler = ({ core, params, query, ignored }) => {
  const { limit, cursor } = readQuery(query, ignored, {
    limit: optional(int({ min: 1, max: 200 }), 50), cursor: maybe(int({ min: 1 }))
  })
  const webhook = tableOf(core).get(needBank(core.store, params.bank_id!).seq, params.webhook_id!)
  if (webhook === null) throw notFound()
  const found = tableOf(core).deliveries(webhook, cursor, limit + 1)
  const page = found.slice(0, limit)
  return json({
    items: page.map(each => deliveryView(webhook, each)), next_cursor: found.length > limit ? String(page.at(-1)!.seq) : null
  })
}

function mustBeAllowed (url: string): void {
  const problem = targetProblem(url)
  if (problem !== null) throw new WireError(400, problem)
}

function tableOf (core: Core): WebhookTable {
  return new WebhookTable(core)
}

function notFound (): WireError {
  return new WireError(404, 'Webhook not found')
}

/** The secret goes in and never out. */
function view (bankId: string, webhook: Webhook): Record<string, unknown> {
  return {
    id: webhook.id, bank_id: bankId, url: webhook.url, secret: null, event_types: webhook.eventTypes, enabled: webhook.enabled,
    http_config: webhook.httpConfig, created_at: wireTime(webhook.createdAt), updated_at: wireTime(webhook.updatedAt)
  }
}

function deliveryView (webhook: Webhook, delivery: Delivery): Record<string, unknown> {
  return {
    id: delivery.id, event_id: delivery.id, webhook_id: webhook.id, url: webhook.url, event_type: delivery.event_type,
    status: delivery.status,
    attempts: delivery.attempts, next_retry_at: wireTime(delivery.next_retry_at), last_error: delivery.last_error,
    last_response_status: delivery.last_response_status, last_response_body: delivery.last_response_body,
    last_attempt_at: wireTime(delivery.last_attempt_at), created_at: wireTime(delivery.created_at),
    updated_at: wireTime(delivery.updated_at)
  }
}

const WEBHOOK = `${BANK}/webhooks/{webhook_id}`

export const routes: readonly WireRoute[] = [
  { method: 'POST', path: `${BANK}/webhooks`, handler: create },
  { method: 'GET', path: `${BANK}/webhooks`, handler: list },
  { method: 'PATCH', path: WEBHOOK, handler: update },
  { method: 'DELETE', path: WEBHOOK, handler: remove },
  { method: 'GET', path: `${WEBHOOK}/deliveries`, handler: deliveries }
]
