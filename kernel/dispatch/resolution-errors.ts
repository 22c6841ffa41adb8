import { svcError, type SvcError, type SurfaceName } from '../contract/index.js'
import { unservedMessage } from '../slots/slot-errors.js'
import type { BodyProblem } from './body-view.js'
import type { Resolution } from './resolve.js'

export function bodyError (problem: BodyProblem): SvcError {
  return problem === 'invalid_json'
    ? svcError('request.invalid_json', 'the body is not valid JSON')
    : svcError('request.not_an_object', 'the body is JSON but not an object')
}

export function missingModel (path: string): SvcError {
  return svcError('request.missing_model', '`model` is missing: name a slot, a model id or a virtual name such as svc/agent; GET /v1/models lists them',
    { param: 'model', details: { field: 'model', path } })
}

/** The refusal of a model that leads nowhere (SPEC.md "Model addressing"). */
export function resolutionError (
  resolution: Exclude<Resolution, { kind: 'slot' | 'upstream' }>, model: string, surface: SurfaceName
): SvcError {
  const details = { model, surface }
  switch (resolution.kind) {
    case 'not-found':
      return svcError('model.not_found', `model '${model}' is no slot, no registered model and no upstream's; GET /v1/models lists what there is`,
        { param: 'model', details })
    case 'not-loaded':
      return svcError('model.not_loaded', `model '${model}' cannot be used: ${resolution.reason}`,
        { param: 'model', details: { ...details, slot: resolution.slot } })
    case 'unserved': {
      const { slot, anchor, enabled } = resolution
      return svcError('npu.trio_unavailable', unservedMessage(slot, anchor, enabled),
        { param: 'model', details: { ...details, slot, anchor, endpoint: endpoints[surface] } })
    }
    case 'no-route':
      return svcError('dispatch.no_route', `model '${model}' cannot be used here: ${resolution.reason}`,
        { param: 'model', details: { ...details, slot: resolution.slot } })
  }
}

const endpoints: Readonly<Record<SurfaceName, string>> = {
  'chat': '/v1/chat/completions',
  'completions': '/v1/completions',
  'responses': '/v1/responses',
  'messages': '/v1/messages',
  'count-tokens': '/v1/messages/count_tokens',
  'embeddings': '/v1/embeddings',
  'rerank': '/v1/rerankings',
  'transcription': '/v1/audio/transcriptions',
  'speech': '/v1/audio/speech',
  'image': '/v1/images/generations'
}
