import { defineErrors } from 'svc-gateway/plugin'

export const npuError = defineErrors('npu', {
  trio_unavailable: {
    status: 503, heals: true, when: 'the engine of another slot serves this slot, and is down or was started without it'
  }
})
