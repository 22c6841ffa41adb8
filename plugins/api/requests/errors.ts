import { defineErrors } from 'svc-gateway/plugin'

export const requestError = defineErrors('request', {
  not_found: { status: 404, when: 'no request in flight has this id' }
})
