import { defineErrors } from 'svc-gateway/plugin'

export const channelError = defineErrors('channel', {
  invalid: { status: 400, when: 'the body has no channel' },
  unknown: { status: 400, when: 'there is no channel of this name' }
})
