import { defineErrors } from 'svc-gateway/plugin'

export const memoryError = defineErrors('memory', {
  unavailable: { status: 503, when: 'memory is off; `svc memory enable` switches it on' },
  agent_id_invalid: { status: 400, when: '`X-svc-Agent` is not the name of an agent' },
  namespace_invalid: { status: 400, when: 'the dataset does not exist, or is private and `X-svc-Private` is missing' },
  bank_private: { status: 403, when: 'an agent requests what belongs to another agent only' },
  engine_unreachable: { status: 503, heals: true, when: 'the memory engine does not answer' },
  engine_error: { status: 502, when: 'the memory engine failed; its refusals keep their status, 429 and 503 also their `Retry-After`' },
  engine_shape: { status: 502, when: 'an answer of the memory engine is not JSON, or lacks a required key' },
  engine_unsupported: { status: 501, when: 'the memory engine cannot do this here, usually because it lacks a model' }
})
