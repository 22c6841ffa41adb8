import { defineErrors } from 'svc-gateway/plugin'

export const capabilityError = defineErrors('capability', {
  unknown_slot: { status: 400, when: 'no group of capabilities has this name' },
  unknown_child: { status: 400, when: 'the group has no such capability' },
  unknown_fields: { status: 400, when: 'a selection has fields that do not exist' },
  illegal_model_fit: { status: 400, when: 'the model is too large for this host' },
  apply_failed: { status: 503, heals: true, when: 'the selection is saved, but its engine failed to apply it' }
})
