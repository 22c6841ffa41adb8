import { defineErrors } from 'svc-gateway/plugin'

export const eventsError = defineErrors('events', {
  invalid_query: { status: 400, when: 'a filter of the event stream is invalid' }
})
