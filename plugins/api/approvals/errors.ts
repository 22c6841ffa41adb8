import { defineErrors } from 'svc-gateway/plugin'

export const approvalsError = defineErrors('approvals', {
  operator_only: { status: 403, when: 'an agent tried to approve a call' },
  no_decision: { status: 400, when: 'the form of the approval page says neither approve nor deny' }
})
