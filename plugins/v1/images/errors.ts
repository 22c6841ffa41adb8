import { defineErrors } from 'svc-gateway/plugin'

export const imageError = defineErrors('image', {
  prompt_required: { status: 422, when: 'an image request has no prompt' }
})
