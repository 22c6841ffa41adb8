import { defineErrors } from 'svc-gateway/plugin'

export const slotError = defineErrors('slot', {
  name_required: { status: 400, when: 'a slot is created without a name' }
})

export const swapError = defineErrors('swap', {
  missing_model: { status: 400, when: 'a swap has no model' }
})
