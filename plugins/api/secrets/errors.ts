import { defineErrors } from 'svc-gateway/plugin'

export const secretError = defineErrors('secret', {
  value_invalid: { status: 400, when: 'the value of a secret is empty or not one printable line' },
  write_failed: { status: 500, when: 'the file of secrets cannot be written' }
})
