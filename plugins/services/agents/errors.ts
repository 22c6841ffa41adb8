import { defineErrors } from 'svc-gateway/plugin'

export const agentError = defineErrors('agent', {
  unknown: { status: 404, when: 'no agent has this name' }
})
