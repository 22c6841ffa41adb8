import { defineErrors } from 'svc-gateway/plugin'

export const updateError = defineErrors('system', {
  update_error: { status: 500, when: 'the channel of releases cannot be asked' },
  update_manifest_invalid: { status: 400, when: 'the manifest of a release cannot be used: its schema, its channel, its version' }
})
