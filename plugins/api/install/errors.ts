import { defineErrors } from 'svc-gateway/plugin'

export const installError = defineErrors('install', {
  pick_default_failed: { status: 400, when: 'the selection cannot be provisioned, or a service does not restart' },
  curated_not_found: { status: 404, when: 'no tier has this name' },
  slot_toml_not_found: { status: 404, when: 'no slot file has this name' },
  model_id_required: { status: 400, when: 'a request to set a slot\'s model has no model' },
  unit_not_repairable: { status: 400, when: 'the unit may not be restarted here' }
})
