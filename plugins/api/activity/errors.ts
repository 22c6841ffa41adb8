import { defineErrors } from 'svc-gateway/plugin'

export const activityError = defineErrors('activity', {
  invalid_query: { status: 400, when: 'a filter of the activity log is invalid' },
  unavailable: { status: 503, when: 'the activity log is switched off' }
})
