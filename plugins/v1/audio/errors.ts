import { defineErrors } from 'svc-gateway/plugin'

export const audioError = defineErrors('audio', {
  unsupported_format: { status: 415, when: 'the engine cannot decode the audio file' }
})
