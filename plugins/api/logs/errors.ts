import { defineErrors } from 'svc-gateway/plugin'

export const systemError = defineErrors('system', {
  logs_busy: { status: 503, heals: true, when: 'the limit of readers that follow the journal is reached' },
  logs_error: { status: 400, when: 'a query of the logs has no unit, or an invalid value' }
})
