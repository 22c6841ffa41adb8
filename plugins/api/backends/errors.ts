import { defineErrors } from 'svc-gateway/plugin'

export const backendError = defineErrors('backend', {
  not_found: { status: 404, when: 'the host has no such backend' },
  model_id_required: { status: 400, when: 'a load on the NPU names no model' },
  slot_name_required: { status: 400, when: 'an unload from the NPU names no slot' },
  not_npu_slot: { status: 400, when: 'the slot is not on the NPU' },
  no_slot_port: { status: 409, when: 'no port is left for another slot on the NPU' }
})
