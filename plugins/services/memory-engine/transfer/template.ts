import type { Core } from '../core.js'
import { configDefaults, configProblem } from '../banks/config.js'
import { DirectiveTable } from '../models/directive-table.js'
import { MAX_TOKENS, trigger } from '../models/mental-model-shapes.js'
import { MentalModelTable } from '../models/mental-model-table.js'
import { triggerOf } from '../models/model-view.js'
import { submitRefresh } from '../models/submit-refresh.js'
import { ensureBank, findBank, overridesOf, type BankRow } from '../store/bank-table.js'
import { WireError } from '../wire/answer.js'
import { storedTags } from '../wire/tags.js'
import { anything, bool, int, listOf, mapOf, maybe, nullable, object, optional, required, text, type Shape } from '../wire/shape.js'

export const TEMPLATE_VERSION = '1'

/** `BankTemplateManifest` of the wire: what a bank is like, without what it remembers. */
export const manifest = object({
  version: required(text),
  bank: maybe(mapOf(anything)),
  mental_models: maybe(listOf(object({
    id: required(text), name: required(text), source_query: required(text), tags: optional(storedTags, []),
    max_tokens: optional(int({ min: 1 }), MAX_TOKENS), trigger: optional(nullable(trigger), null)
  }))),
  directives: maybe(listOf(object({
    name: required(text), content: required(text), priority: optional(int(), 0), is_active: optional(bool, true),
    tags: optional(storedTags, [])
  })))
})
export type Manifest = typeof manifest extends Shape<infer T> ? T : never

export function templateOf (core: Core, bank: BankRow): Record<string, unknown> {
  const own = overridesOf(bank)
  const models = modelsOf(core, bank)
  const directives = new DirectiveTable(core).all(bank.seq)
  return {
    version: TEMPLATE_VERSION,
    bank: Object.fromEntries(Object.keys(configDefaults).map(key => [key, own[key] ?? null])),
    mental_models: models.length === 0 ? null : models,
    directives: directives.length === 0 ? null : directives.map(({ name, content, priority, isActive, tags }) =>
      ({ name, content, priority, is_active: isActive, tags }))
  }
}

function modelsOf (core: Core, bank: BankRow): ReadonlyArray<Record<string, unknown>> {
  const models: Array<Record<string, unknown>> = []
  for (const { isKnowledgePage, id, name, sourceQuery, tags, maxTokens, settings } of new MentalModelTable(core).each(bank.seq)) {
    if (isKnowledgePage) continue
    models.push({ id, name, source_query: sourceQuery, tags, max_tokens: maxTokens, trigger: triggerOf(settings) })
  }
  return models
}

/** Applies a template as a whole, in one transaction; `isDry` only says what it would do. */
export function applyTemplate (core: Core, bankId: string, template: Manifest, isDry: boolean): Record<string, unknown> {
  const config = Object.fromEntries(Object.entries(template.bank ?? {}).filter(([, value]) => value !== null))
  mustBeSound(template, config)
  const { store } = core
  const [models, directives] = [new MentalModelTable(core), new DirectiveTable(core)]
  const known = findBank(store, bankId)?.seq ?? -1
  const byName = new Map(directives.all(known).map(each => [each.name, each]))
  const [oldModels, newModels] = divided(template.mental_models ?? [], ({ id }) => models.get(known, id) !== null)
  const [oldDirectives, newDirectives] = divided(template.directives ?? [], ({ name }) => byName.has(name))
  const operations: string[] = []
  if (!isDry) {
    store.transaction(() => {
      const bank = ensureBank(store, bankId, core.now())
      store.run('UPDATE banks SET overrides = ?, updated_at = ? WHERE seq = ?', [JSON.stringify({ ...overridesOf(bank), ...config }), core.now(), bank.seq])
      for (const {
        id, source_query: sourceQuery, max_tokens: maxTokens, trigger: settings, ...values
      } of [...oldModels, ...newModels]) {
        const all = { ...values, sourceQuery, maxTokens, settings: settings ?? {} }
        const model = models.update(bank.seq, id, all) ?? models.add(bank.seq, id, all)
        operations.push(submitRefresh(core, bankId, model).id)
      }
      for (const { is_active: isActive, ...values } of [...oldDirectives, ...newDirectives]) {
        const same = byName.get(values.name)
        if (same === undefined) directives.add(bank.seq, { ...values, isActive })
        else directives.update(bank.seq, same.id, { ...values, isActive })
      }
    })
  }
  return {
    bank_id: bankId,
    config_applied: Object.keys(config).length > 0,
    mental_models_created: newModels.map(({ id }) => id),
    mental_models_updated: oldModels.map(({ id }) => id),
    directives_created: newDirectives.map(({ name }) => name),
    directives_updated: oldDirectives.map(({ name }) => name),
    operation_ids: operations,
    dry_run: isDry
  }
}

function mustBeSound (template: Manifest, config: Readonly<Record<string, unknown>>): void {
  if (template.version !== TEMPLATE_VERSION) {
    throw new WireError(400, `Unsupported template version '${template.version.slice(0, 50)}'; this engine reads version ${TEMPLATE_VERSION}`)
  }
  const problem = configProblem(config)
  if (problem !== null) throw new WireError(400, problem)
  for (const [what, names] of [['mental model', (template.mental_models ?? []).map(({ id }) => id)], ['directive', (template.directives ?? []).map(({ name }) => name)]] as const) {
    const seen = new Set<string>()
    const twice = names.find(name => seen.size === seen.add(name).size)
    if (twice !== undefined) throw new WireError(400, `The template has ${what} '${twice.slice(0, 100)}' twice`)
  }
}

function divided<T> (all: readonly T[], isFirst: (each: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter(each => !isFirst(each))]
}
