import { defineErrors } from 'svc-gateway/plugin'

export const layoutError = defineErrors('layout', {
  invalid: { status: 422, when: 'a layout of the dashboard is of another version, or has cards that do not exist' }
})
