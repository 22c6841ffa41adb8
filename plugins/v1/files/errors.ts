import { defineErrors } from 'svc-gateway/plugin'

export const filesError = defineErrors('files', {
  not_found: { status: 404, when: 'no file has this id, or it has expired' },
  store_full: { status: 413, when: 'the configured limit of kept files or bytes is reached' }
})
