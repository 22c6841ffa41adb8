import { defineErrors } from 'svc-gateway/plugin'

export const selectionError = defineErrors('capability', {
  invalid_selection: { status: 400, when: 'a selection contradicts itself, or something it needs is missing' },
  unknown_model: { status: 404, when: 'no model with this id supports the capability' },
  illegal_backend_model_pair: { status: 400, when: 'the model does not run on the device' }
})
