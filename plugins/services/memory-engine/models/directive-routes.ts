import { needBank } from '../store/bank-table.js'
import type { Core } from '../core.js'
import { BANK, json, WireError, type Handler, type WireRoute } from '../wire/answer.js'
import { storedTags } from '../wire/tags.js'
import { bool, int, listOf, maybe, object, oneOf, optional, readBody, readQuery, required, text } from '../wire/shape.js'
import { DirectiveTable } from './directive-table.js'
import { directiveView } from './model-view.js'

const created = object({
  name: required(text),
  content: required(text),
  priority: optional(int(), 0),
  is_active: optional(bool, true),
  tags: optional(storedTags, [])
})

const changed = object({
  name: maybe(text), content: maybe(text), priority: maybe(int()), is_active: maybe(bool), tags: maybe(storedTags)
})

const list: Handler = ({ core, params, query, ignored }) => {
  const bankId = params.bank_id!
  const { tags, tags_match: mode, active_only: activeOnly, limit, offset } = readQuery(query, ignored, {
    tags: maybe(listOf(text)),
    tags_match: optional(oneOf('any', 'all', 'exact'), 'any'),
    active_only: optional(bool, true),
    limit: optional(int({ min: 1, max: 1000 }), 100),
    offset: optional(int({ min: 0 }), 0)
  }, ['tags'])
  const bank = needBank(core.store, bankId).seq
  const { total, directives } = tableOf(core).page(bank, { tags, mode, activeOnly }, { limit, offset })
  return json({ items: directives.map(each => directiveView(bankId, each)), total, limit, offset })
}

const create: Handler = ({ core, params, body, headers, ignored }) => {
  const { name, content, priority, is_active: isActive, tags } = readBody(body, headers, ignored, created)
  const bank = needBank(core.store, params.bank_id!)
  return json(directiveView(params.bank_id!, tableOf(core).add(bank.seq, { name, content, priority, isActive, tags })))
}

const one: Handler = ({ core, params }) => {
  const bank = needBank(core.store, params.bank_id!)
  const directive = tableOf(core).get(bank.seq, params.directive_id!)
  if (directive === null) throw notFound(params.directive_id!)
  return json(directiveView(params.bank_id!, directive))
}

const update: Handler = ({ core, params, body, headers, ignored }) => {
  const { name, content, priority, is_active: isActive, tags } = readBody(body, headers, ignored, changed)
  const bank = needBank(core.store, params.bank_id!)
  const directive = tableOf(core).update(bank.seq, params.directive_id!, {
    ...name !== null && { name }, ...content !== null && { content }, ...priority !== null && { priority },
    ...isActive !== null && { isActive }, ...tags !== null && { tags }
  })
  if (directive === null) throw notFound(params.directive_id!)
  return json(directiveView(params.bank_id!, directive))
}

const remove: Handler = ({ core, params }) => {
  const bank = needBank(core.store, params.bank_id!)
  if (!tableOf(core).delete(bank.seq, params.directive_id!)) throw notFound(params.directive_id!)
  return json({ status: 'deleted' })
}

function tableOf (core: Core): DirectiveTable {
  return new DirectiveTable(core)
}

function notFound (id: string): WireError {
  return new WireError(404, `Directive '${id}' not found`)
}

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/directives`, handler: list },
  { method: 'POST', path: `${BANK}/directives`, handler: create },
  { method: 'GET', path: `${BANK}/directives/{directive_id}`, handler: one },
  { method: 'PATCH', path: `${BANK}/directives/{directive_id}`, handler: update },
  { method: 'DELETE', path: `${BANK}/directives/{directive_id}`, handler: remove }
]
