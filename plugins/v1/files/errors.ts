import { defineErrors } from 'svc-gateway/plugin'

export const filesError = defineErrors('files', {
  not_found: { status: 404, when: 'there is no file of this id, or it has expired' },
  store_full: { status: 413, when: 'as many files, or bytes, are kept as the configuration allows' }
})
