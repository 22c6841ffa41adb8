import {
  nameSchema, svcError, type ActivityLog, type ConfigService, type DispatchService, type EventBus, type ModelRegistry,
  type RouteCall, type SlotService
} from 'svc-gateway/plugin'
import { deleteModel } from '../../api/models/ref.js'
import type { ModelPulls } from '../../services/pull/ref.js'
import { isObject, malformed, textOr, untranslatable, type Json } from '../../v1/over-chat/ref.js'
import { modelIn } from './body.js'
import { ollamaError } from './errors.js'
import { readModelfile } from './modelfile.js'
import { nameHere, spellingsOf } from './names.js'

export interface ManageServices {
  readonly activity: ActivityLog
  readonly config: ConfigService
  readonly dispatch: DispatchService
  readonly events: EventBus
  readonly models: ModelRegistry
  readonly pulls: ModelPulls
  readonly slots: SlotService
}

type Caller = Pick<RouteCall, 'actor' | 'requestId'>

const textSurfaces = ['chat', 'embeddings'] as const
const createKeys: ReadonlySet<string> = new Set(['model', 'name', 'from', 'modelfile', 'parameters', 'stream'])

/** The name that a model is to have: without the tag that says nothing. */
function newName (name: string): string {
  return name.endsWith(':latest') ? name.slice(0, -':latest'.length) : name
}

/** `/api/copy`: another name for what there is. */
export async function copy (services: ManageServices, caller: Caller, { source, destination }: Json): Promise<void> {
  if (textOr(source, '') === '') throw malformed('source', 'is required: the model to copy')
  if (textOr(destination, '') === '') throw malformed('destination', 'is required: the new name')
  await addAlias(services, caller, newName(destination as string), targetOf(services, source as string))
}

/** What an alias would lead to: one hop. Throws `model.not_found`. */
function targetOf ({ config, dispatch }: ManageServices, name: string): string {
  const id = nameHere(dispatch, name, textSurfaces)
  const { aliases } = config.snapshot.svc
  if (Object.hasOwn(aliases, id) && !config.snapshot.slots.has(id)) return aliases[id]!
  if (textSurfaces.every(surface => dispatch.target(id, surface) === null)) throw noModel(name)
  return id
}

async function addAlias (services: ManageServices, { actor, requestId }: Caller, alias: string, target: string): Promise<void> {
  const { activity, config, models } = services
  if (config.snapshot.slots.has(alias) || models.get(alias) !== undefined) {
    throw ollamaError('ollama.name_taken', `'${alias}' is already the name of a slot or model; choose another one`, { param: 'destination' })
  }
  await activity.audited({ category: 'settings', action: 'settings.update', target: 'svc.toml', actor, request_id: requestId }, async note => {
    await config.patchSvc({ aliases: { [alias]: target } })
    note({ after: { aliases: { [alias]: target } } })
  })
}

/**
 * `/api/delete`: an alias, or a model of the registry that no slot has; its file stays. Throws `model.in_use`,
 * `model.not_found`, and `ollama.name_taken` for a slot.
 */
export async function remove (services: ManageServices, { actor, requestId }: Caller, asked: Json): Promise<void> {
  const { activity, config, models } = services
  const name = modelIn(asked)
  const spellings = spellingsOf(name)
  const alias = spellings.find(spelling => Object.hasOwn(config.snapshot.svc.aliases, spelling))
  if (alias !== undefined) {
    const before = { aliases: { [alias]: config.snapshot.svc.aliases[alias] } }
    await activity.audited({ category: 'settings', action: 'settings.update', target: 'svc.toml', actor, request_id: requestId }, async note => {
      await config.patchSvc({ aliases: { [alias]: null } })
      note({ before })
    })
    return
  }
  const slot = spellings.find(spelling => config.snapshot.slots.has(spelling))
  if (slot !== undefined) {
    throw ollamaError('ollama.name_taken', `'${slot}' is a slot and not a model; \`svc slot delete ${slot}\` deletes it`, { param: 'model' })
  }
  const id = spellings.find(spelling => models.get(spelling) !== undefined)
  if (id === undefined) throw noModel(name)
  await activity.audited({ category: 'model', action: 'model.delete', target: id, actor, request_id: requestId }, async () => {
    await deleteModel(services, id, { cascade: false })
  })
}

/** What `/api/create` makes, decided. */
type Creation =
  | { readonly alias: string, readonly target: string }
  | { readonly slot: string, readonly config: Readonly<Record<string, unknown>> }

/** `/api/create`: an alias of what serves already, or a slot for a model that has none. Throws before anything is made. */
export function creationOf (services: ManageServices, asked: Json): Creation {
  const name = newName(modelIn(asked))
  const { from, parameters } = wishOf(asked)
  const { context } = parametersOf(parameters)
  const { dispatch, models } = services
  const id = nameHere(dispatch, from, textSurfaces)
  const isServed = textSurfaces.some(surface => dispatch.target(id, surface) !== null)
  if (isServed && context === null) return { alias: name, target: targetOf(services, from) }
  const model = isServed ? ownModel(services, id, from) : spellingsOf(from).find(spelling => models.get(spelling) !== undefined)
  if (model === undefined) throw noModel(from)
  if (!nameSchema.safeParse(name).success) throw malformed('model', 'must be lower case letters, digits, `-` or `_`, at most 32: it becomes the name of a slot')
  const embeds = models.get(model)?.capabilities.includes('embed') === true
  return {
    slot: name,
    config: { type: embeds ? 'embedding' : 'llm', model: { default: model, ...context === null ? {} : { context_size: context } } }
  }
}

export async function create (services: ManageServices, { actor, requestId }: Caller, creation: Creation): Promise<void> {
  if ('alias' in creation) return addAlias(services, { actor, requestId }, creation.alias, creation.target)
  const { activity, slots } = services
  const { slot, config } = creation
  await activity.audited({ category: 'slot', action: 'slot.create', target: slot, actor, request_id: requestId }, async note => {
    await slots.create(slot, config)
    note({ after: config })
  })
}

/** The registry's model behind a name that a slot serves: an upstream's has no settings to change here. */
function ownModel ({ dispatch, models }: ManageServices, id: string, from: string): string {
  const target = dispatch.target(id, 'chat') ?? dispatch.target(id, 'embeddings')
  const model = target === null || target.slot === null ? null : target.modelId
  if (model !== null && models.get(model) !== undefined) return model
  throw untranslatable('parameters', `a parameter for '${from.slice(0, 200)}', which does not run on this gateway,`)
}

interface Wish {
  readonly from: string
  readonly parameters: ReadonlyArray<readonly [name: string, value: unknown]>
}

function wishOf (asked: Json): Wish {
  const other = Object.keys(asked).find(key => !createKeys.has(key) && !isNothing(asked[key]))
  if (other !== undefined) throw noPlace(other)
  if (textOr(asked.modelfile, '') !== '') {
    const { from, parameters, others } = readModelfile(asked.modelfile as string)
    if (others.length > 0) throw noPlace(others[0]!)
    if (textOr(asked.from, from) !== from) throw malformed('from', 'names another base model than the FROM of the modelfile')
    return { from, parameters: [...parameters, ...parametersIn(asked)] }
  }
  if (textOr(asked.from, '') === '') throw malformed('from', 'is required: the base model')
  return { from: asked.from as string, parameters: parametersIn(asked) }
}

function parametersIn ({ parameters }: Json): Wish['parameters'] {
  if (parameters != null && !isObject(parameters)) throw malformed('parameters', 'must be an object')
  return Object.entries(parameters ?? {})
}

function isNothing (value: unknown): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0)
}

/** Of what a Modelfile can set, the context is the slot's own; the rest comes with each request. */
function parametersOf (parameters: Wish['parameters']): { readonly context: number | null } {
  let context: number | null = null
  for (const [name, value] of parameters) {
    if (name !== 'num_ctx') throw untranslatable(`parameters.${name.slice(0, 64)}`, 'a default of a model; send it as an option of each request: it')
    context = Number(value)
    if (!Number.isInteger(context) || context < 1) throw malformed('parameters.num_ctx', 'must be a whole number of tokens')
  }
  return { context }
}

function noPlace (key: string): Error {
  return malformed(key.slice(0, 64), 'is not supported: only FROM and the parameter num_ctx are used, to create a slot or an alias')
}

function noModel (name: string): Error {
  return svcError('model.not_found', `model '${name.slice(0, 200)}' not found; \`svc model list\` shows all models`,
    { details: { model: name.slice(0, 200) } })
}
