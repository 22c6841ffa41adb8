import { defineErrors } from 'svc-gateway/plugin'

export const approvalsError = defineErrors('approvals', {
  not_found: { status: 404, when: 'no approval has this id, or it was decided so long ago that it is no longer kept' },
  already_resolved: { status: 409, when: 'the approval was already decided, or has expired' },
  denied: { status: 403, when: 'an operator denied the call' },
  expired: { status: 409, when: 'no operator decided on the call in time' },
  too_large: { status: 413, when: 'the arguments of a call that needs an approval are too large to keep' },
  inbox_full: { status: 503, heals: true, when: 'the limit of calls that wait for an approval is reached' },
  interrupted: { status: 503, when: 'the gateway stopped while an approved call ran; in entries only' }
})
