import { shownName, svcError, type SlotAbility, type SvcError, type SurfaceName, type Upstream } from '../../contract/index.js'
import { unservedError } from '../../slots/schedule/slot-errors.js'
import type { BodyProblem } from '../body/body-view.js'
import type { Inability } from './able-slots.js'
import type { DeadEnd, Route } from './resolve.js'

export function bodyError (problem: BodyProblem): SvcError {
  if (problem === 'too_complex') {
    return svcError('request.invalid_json', 'the body is nested too deeply (over 1,000 levels), or has too many keys or lists')
  }
  if (problem === 'empty') return svcError('request.invalid_json', 'the body is empty; it must be a JSON object')
  return problem === 'invalid_json'
    ? svcError('request.invalid_json', 'the body is not valid JSON')
    : svcError('request.not_an_object', 'the body is JSON but not an object')
}

export function missingModel (path: string): SvcError {
  return svcError('request.missing_model', '`model` is missing: name a slot, a model id or a virtual name such as svc/agent; GET /v1/models lists them',
    { param: 'model', details: { field: 'model', path } })
}

/**
 * Why the list of models has no such row: nothing knows the name, or a request for it would be served anyway.
 * @param isSlotListed whether the slot that the name leads to is listed by its own
 */
export function notListed (id: string, route: Route | null, isSlotListed: boolean): SvcError {
  if (route === null) {
    return svcError('model.not_found', `no model has the id '${shownName(id)}'; GET /v1/models lists the models`, { param: 'model', details: { model: shownName(id) } })
  }
  const where = route.kind === 'slot'
    ? `requests for it go to slot '${route.slot}', ${isSlotListed ? underItsOwnName(route.slot) : loadedForIt}`
    : `requests for it go to upstream '${route.upstream}', whose filters keep it off the list`
  const at = route.kind === 'slot' ? { slot: route.slot } : { upstream: route.upstream }
  return svcError('model.not_loaded', `model '${shownName(id)}' is not listed, but can be requested: ${where}`, { param: 'model', details: { model: shownName(id), ...at } })
}

const loadedForIt = 'which is loaded for it; `[dispatcher] list_unloaded = true` lists slots that are not loaded too'

function underItsOwnName (slot: string): string {
  return `which GET /v1/models/${slot} shows; \`[dispatcher] list_virtual = true\` lists the svc/* names of listed slots too`
}

/**
 * The refusal of a model that leads nowhere.
 * @param meant what the client's name is an alias of; the name itself when it is none
 */
export function resolutionError (
  resolution: DeadEnd, name: string, surface: SurfaceName, meant = name
): SvcError {
  const shown = shownName(name)
  const model = name === meant ? `model '${shown}'` : `model '${shown}' (an alias of '${shownName(meant)}')`
  const details = { model: shown, surface }
  switch (resolution.kind) {
    case 'not-found':
      return svcError('model.not_found', `${model} is not a slot, a registered model or a model of an upstream; GET /v1/models lists the models`,
        { param: 'model', details })
    case 'not-loaded':
      return svcError('model.not_loaded', `${model} cannot be used: ${resolution.reason}`,
        { param: 'model', details: { ...details, slot: resolution.slot } })
    case 'unserved': {
      const { slot, anchor, enabled } = resolution
      return unservedError({ slot, anchor, enabled }, resolution,
        { param: 'model', details: { ...details, slot, anchor, endpoint: endpoints[surface] } })
    }
    case 'provider-gone': {
      const { slot, provider } = resolution
      return svcError('slot.provider_gone', `${model} cannot be used: no active plugin provides '${provider}', which slot '${slot}' runs on; ` +
        `its plugin was removed or failed (\`svc plugin list\`). Add it again, or give the slot another: \`svc slot edit ${slot} --provider <name>\``,
      { param: 'model', details: { ...details, slot, provider } })
    }
    case 'no-route':
      return svcError('dispatch.no_route', `${model} cannot be used here: ${resolution.reason}`,
        { param: 'model', details: { ...details, slot: resolution.slot } })
  }
}

const needed: Readonly<Record<SlotAbility, string>> = {
  tools: 'calls tools', vision: 'takes images', audio: 'takes sound', json_schema: 'holds its answer to a JSON schema'
}

/**
 * The refusal of a request that no slot of the name can do.
 * @param able slots that could
 */
export function abilityMissing ({ ability, slots }: Inability, name: string, param: string, able: readonly string[]): SvcError {
  const model = shownName(name)
  const way = able.length === 0
    ? 'GET /v1/models shows the `capabilities` of each'
    : `use ${able.map(slot => `'${slot}'`).join(' or ')} instead`
  return svcError('model.ability_missing',
    `model '${model}' cannot take this request: it needs a model that ${needed[ability]}, and slot ${slots.map(slot => `'${slot}'`).join(', ')} cannot; ${way}`,
    { param, details: { model, ability, slots, able } })
}

/** An upstream that a name was resolved to. Throws `model.not_found` when it was removed since. */
export function configured (upstreams: { get (name: string): Upstream | undefined }, name: string): Upstream {
  const upstream = upstreams.get(name)
  if (upstream !== undefined) return upstream
  throw svcError('model.not_found', `upstream '${name}' is no longer configured`, { param: 'model' })
}

/** The route of each surface; where one has several names, the first. */
export const endpoints: Readonly<Record<SurfaceName, string>> = {
  'chat': '/v1/chat/completions',
  'completions': '/v1/completions',
  'responses': '/v1/responses',
  'input-tokens': '/v1/responses/input_tokens',
  'compact': '/v1/responses/compact',
  'messages': '/v1/messages',
  'count-tokens': '/v1/messages/count_tokens',
  'embeddings': '/v1/embeddings',
  'rerank': '/v1/rerankings',
  'transcription': '/v1/audio/transcriptions',
  'translation': '/v1/audio/translations',
  'speech': '/v1/audio/speech',
  'image': '/v1/images/generations',
  'image-edit': '/v1/images/edits',
  'image-variation': '/v1/images/variations',
  'fim': '/v1/fim/completions',
  'infill': '/infill',
  'tokenize': '/v1/tokenize',
  'detokenize': '/v1/detokenize',
  'score': '/v1/score',
  'moderation': '/v1/moderations'
}
