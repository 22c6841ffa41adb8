import { defineErrors } from 'svc-gateway/plugin'

export const memoryApiError = defineErrors('memory', {
  invalid_bank: { status: 400, when: 'the id of a bank does not begin with a letter or digit, or has more than letters, digits, _ and -' },
  invalid_path: { status: 400, when: 'a name in the path has other characters than letters, digits and `. _ : -`, or leads elsewhere' },
  confirm_required: { status: 400, when: 'bank delete without a confirmation echoing the bank id' },
  operator_only: { status: 403, when: 'an agent asks for what is about all banks' }
})
