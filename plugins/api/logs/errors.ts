import { defineErrors } from 'svc-gateway/plugin'

export const systemError = defineErrors('system', {
  logs_busy: { status: 503, heals: true, when: 'as many readers follow the journal as may' },
  logs_error: { status: 400, when: 'a query of the logs names no unit, or has a wrong value' }
})
