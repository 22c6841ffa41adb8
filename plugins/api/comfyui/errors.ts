import { defineErrors } from 'svc-gateway/plugin'

export const comfyuiError = defineErrors('comfyui', {
  'invalid_mode': { status: 422, when: 'a switchover has no mode, or has unknown fields' },
  'invalid_pin': { status: 422, when: 'a pin is invalid, or does not fit the mode' },
  'switch_in_progress': { status: 409, heals: true, when: 'a switch of the GPU is under way' },
  'busy': { status: 409, heals: true, when: 'the image engine has jobs; force cancels them' },
  'arbiter_unavailable': { status: 503, when: 'the image slot shares no GPU with other slots' },
  'fetch.invalid_body': { status: 422, when: 'a fetch of image models has neither auto nor selections' },
  'fetch.unknown_variant': { status: 422, when: 'no curated image model has that capability and family' },
  'no_output': { status: 404, when: 'the image engine has saved no image yet' }
})
