import { defineErrors } from 'svc-gateway/plugin'

export const moderationsError = defineErrors('moderations', {
  unavailable: { status: 400, when: 'no model is named and nothing here moderates' },
  not_a_guard: { status: 422, when: 'the model of a slot answers in another way than a guard model does' }
})
