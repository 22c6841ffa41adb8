import { defineErrors } from 'svc-gateway/plugin'

export const modelError = defineErrors('model', {
  in_use: { status: 409, when: 'slots refer to the model and may not be changed' }
})
