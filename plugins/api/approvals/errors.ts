import { defineErrors } from 'svc-gateway/plugin'

export const approvalsError = defineErrors('approvals', {
  operator_only: { status: 403, when: 'an agent would approve a call' }
})
