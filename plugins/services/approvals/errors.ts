import { defineErrors } from 'svc-gateway/plugin'

export const approvalsError = defineErrors('approvals', {
  not_found: { status: 404, when: 'no approval has this id, or it was decided so long ago that it is not kept' },
  already_resolved: { status: 409, when: 'the approval was decided already, or has expired' },
  denied: { status: 403, when: 'an operator denied the call' },
  expired: { status: 409, when: 'no operator decided about the call in time' },
  too_large: { status: 413, when: 'the arguments of a call that needs an approval are too large to be kept' },
  inbox_full: { status: 503, heals: true, when: 'as many calls wait for an approval as may' },
  interrupted: { status: 503, when: 'the gateway ended while an approved call ran; in entries only' }
})
