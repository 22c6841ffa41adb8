import { defineErrors } from 'svc-gateway/plugin'

export const modelError = defineErrors('model', {
  in_use: { status: 409, when: 'slots use the model, and force_cascade is not set' }
})
