import { needBank, type BankRow } from '../store/bank-table.js'
import type { Core } from '../core.js'
import { requireChat } from '../llm/ask.js'
import { asking } from '../llm/refusal.js'
import { operationsOf } from '../operations/operations.js'
import { BANK, json, listed, WireError, type Handler, type WireCall, type WireRoute } from '../wire/answer.js'
import { bool, int, listOf, maybe, oneOf, optional, readBody, readOptionalBody, readQuery, text, unpaged } from '../wire/shape.js'
import { wireTime } from '../wire/times.js'
import { Turns } from '../store/turn.js'
import { MentalModelTable, type MentalModel } from './mental-model-table.js'
import { createModel, refreshModel, updateModel } from './mental-model-shapes.js'
import { modelDetails, modelView, type ModelDetail } from './model-view.js'
import { withTexts } from './shown-basis.js'
import type { ReflectResponse } from './basis.js'
import { isStale, stalenessOf } from './staleness.js'
import { dryRun } from './dry-run.js'
import { isFullRefresh, submitRefresh } from './submit-refresh.js'

const list: Handler = async ({ core, params, query, ignored, signal }) => {
  const bankId = params.bank_id!
  const { tags, tags_match: mode, detail, limit, offset, exclude_knowledge_pages: withoutPages } = readQuery(query, ignored, {
    tags: maybe(listOf(text)),
    tags_match: optional(oneOf('any', 'all', 'exact'), 'any'),
    detail: optional(oneOf(...modelDetails), 'metadata'),
    limit: optional(int({ min: 1, max: 1000 }), 100),
    offset: optional(int({ min: 0 }), 0),
    exclude_knowledge_pages: optional(bool, false)
  }, ['tags'])
  const bank = needBank(core.store, bankId)
  const { total, models } = tableOf(core).page(bank.seq, { tags, mode, withoutPages }, { limit, offset })
  const isStaleNow = stalenessOf(core, bank.seq)
  const turns = new Turns(signal)
  const items: object[] = []
  for (const each of models) {
    items.push(shown(core, bank, each, detail, isStaleNow(each)))
    await turns.next()
  }
  return json({ items, total, limit, offset })
}

const create: Handler = ({ core, params, body, headers, ignored }) => {
  const bankId = params.bank_id!
  const { id, name, source_query: sourceQuery, tags, max_tokens: maxTokens, trigger } = readBody(
    body, headers, ignored, createModel
  )
  const bank = needBank(core.store, bankId).seq
  return core.store.transaction(() => {
    if (id !== null && tableOf(core).get(bank, id) !== null) throw new WireError(409, `Mental model '${id}' already exists in bank '${bankId}'`)
    const model = tableOf(core).add(bank, id, { name, sourceQuery, tags, maxTokens, settings: trigger ?? {} })
    return json({ mental_model_id: model.id, operation_id: submitRefresh(core, bankId, model).id })
  })
}

const one: Handler = ({ core, params, query, ignored }) => {
  const { detail } = readQuery(query, ignored, { detail: optional(oneOf(...modelDetails), 'full') })
  const bank = needBank(core.store, params.bank_id!)
  const model = known(core, params)
  return json(shown(core, bank, model, detail, isStale(core, bank.seq, model)))
}

const update: Handler = ({ core, params, body, headers, ignored }) => {
  const { name, source_query: sourceQuery, max_tokens: maxTokens, tags, trigger } = readBody(body, headers, ignored, updateModel)
  const { id } = known(core, params)
  const bank = needBank(core.store, params.bank_id!)
  const model = tableOf(core).update(bank.seq, id, {
    ...name !== null && { name }, ...sourceQuery !== null && { sourceQuery }, ...maxTokens !== null && { maxTokens },
    ...tags !== null && { tags }, ...trigger !== null && { settings: trigger }
  })
  return json(shown(core, bank, model!, 'full', null))
}

const remove: Handler = ({ core, params }) => {
  const bankId = params.bank_id!
  const { id } = known(core, params)
  const { table, queue } = operationsOf(core)
  tableOf(core).delete(needBank(core.store, bankId).seq, id)
  for (let waiting = table.waiting(bankId, 'refresh_mental_model', id); waiting !== null; waiting = table.waiting(bankId, 'refresh_mental_model', id)) {
    queue.cancel(waiting.id)
  }
  return json({ status: 'deleted' })
}

const history: Handler = async ({ core, params, query, ignored, signal }) => {
  const page = readQuery(query, ignored, unpaged)
  const bank = needBank(core.store, params.bank_id!)
  const model = known(core, params)
  const total = tableOf(core).changes(model)
  const turns = new Turns(signal)
  const changes: object[] = []
  for (const { changedAt, change } of tableOf(core).history(model, page)) {
    const { previous_content: content, previous_reflect_response: kept, ...rest } = change
    const response = withTexts(core.store, bank, model, kept as ReflectResponse | null)
    changes.push({ previous_content: content, previous_reflect_response: response, changed_at: wireTime(changedAt), ...rest })
    await turns.next()
  }
  return listed(changes, total)
}

const refresh = asking(async ({ core, params, body, headers, ignored }) => {
  const isFull = readOptionalBody(body, headers, ignored, refreshModel)?.mode === 'full'
  const model = known(core, params)
  requireChat(core, 'the refresh of a mental model')
  const bankId = params.bank_id!
  const waiting = operationsOf(core).table.waiting(bankId, 'refresh_mental_model', model.id)
  const willDo = waiting !== null && (!isFull || isFullRefresh(waiting))
  return json({ operation_id: (willDo ? waiting : submitRefresh(core, bankId, model, isFull)).id, status: 'queued' })
})

const tryRefresh = asking(
  async ({ core, params, signal }) => json(await dryRun(core, params.bank_id!, known(core, params), signal))
)

const clear: Handler = ({ core, params }) => {
  const model = known(core, params)
  const bank = needBank(core.store, params.bank_id!)
  const cleared = core.store.transaction(() => tableOf(core).clear(bank.seq, model))
  return json(shown(core, bank, cleared, 'full', null))
}

function shown ({ store }: Core, bank: BankRow, model: MentalModel, detail: ModelDetail, isStaleNow: boolean | null): object {
  const { reflectResponse: kept } = model
  const response = detail === 'full' ? withTexts(store, bank, model, kept) : null
  return modelView(bank.bank_id, { ...model, reflectResponse: response }, detail, isStaleNow)
}

function tableOf (core: Core): MentalModelTable {
  return new MentalModelTable(core)
}

function known (core: Core, { bank_id: bankId, mental_model_id: id }: WireCall['params']): MentalModel {
  const model = tableOf(core).get(needBank(core.store, bankId!).seq, id!)
  if (model === null) throw new WireError(404, `Mental model '${id}' not found`)
  return model
}

const MODEL = `${BANK}/mental-models/{mental_model_id}`

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/mental-models`, handler: list },
  { method: 'POST', path: `${BANK}/mental-models`, handler: create },
  { method: 'GET', path: MODEL, handler: one },
  { method: 'PATCH', path: MODEL, handler: update },
  { method: 'DELETE', path: MODEL, handler: remove },
  { method: 'GET', path: `${MODEL}/history`, handler: history },
  { method: 'POST', path: `${MODEL}/refresh`, handler: refresh },
  { method: 'POST', path: `${MODEL}/dry-run-refresh`, handler: tryRefresh },
  { method: 'POST', path: `${MODEL}/clear`, handler: clear }
]
