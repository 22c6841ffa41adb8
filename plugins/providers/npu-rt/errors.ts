import { defineErrors } from 'svc-gateway/plugin'

export const npuError = defineErrors('npu', {
  trio_unavailable: {
    status: 503, heals: true, when: 'a slot that another one\'s engine serves is asked for while that engine is down or was started without it'
  }
})
