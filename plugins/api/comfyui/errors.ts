import { defineErrors } from 'svc-gateway/plugin'

export const comfyuiError = defineErrors('comfyui', {
  'invalid_mode': { status: 422, when: 'a switchover names no mode, or has fields that do not exist' },
  'invalid_pin': { status: 422, when: 'a pin is no pin, or does not go with the mode' },
  'switch_in_progress': { status: 409, heals: true, when: 'the GPU is changing hands' },
  'busy': { status: 409, heals: true, when: 'the image engine has jobs; force ends them' },
  'arbiter_unavailable': { status: 503, when: 'the image slot shares no GPU with other slots' },
  'fetch.invalid_body': { status: 422, when: 'a fetch of image models says neither auto nor selections' },
  'fetch.unknown_variant': { status: 422, when: 'no curated image model is of that capability and family' },
  'no_output': { status: 404, when: 'the image engine has saved no image yet' }
})
