import { defineErrors } from 'svc-gateway/plugin'

export const imageError = defineErrors('image', {
  cache_miss: { status: 404, when: 'the image cache does not have this image, or no longer has it' }
})
