import { defineErrors } from 'svc-gateway/plugin'

export const memoryError = defineErrors('memory', {
  unavailable: { status: 503, when: 'memory is off; `svc memory enable` switches it on' },
  agent_id_invalid: { status: 400, when: '`X-svc-Agent` is not the name of an agent' },
  namespace_invalid: { status: 400, when: 'the dataset does not exist, or is private and `X-svc-Private` is missing' },
  bank_private: { status: 403, when: 'an agent asks for what belongs to another agent alone' },
  engine_unreachable: { status: 503, heals: true, when: 'the memory engine does not answer' },
  engine_error: { status: 502, when: 'the memory engine failed; what it refuses keeps its own status, 429 and 503 their `Retry-After`' },
  engine_shape: { status: 502, when: 'an answer of the memory engine is no JSON, or lacks the key that it must have' },
  engine_unsupported: { status: 501, when: 'the memory engine cannot do it here, most often because no model is there' }
})
