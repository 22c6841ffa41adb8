import { defineErrors } from 'svc-gateway/plugin'

export const moderationsError = defineErrors('moderations', {
  unavailable: { status: 400, when: 'no model is named and no slot or upstream is set up for moderation' },
  not_a_guard: { status: 422, when: 'the model of a slot does not answer like a guard model' }
})
