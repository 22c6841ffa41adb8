import { defineErrors } from 'svc-gateway/plugin'

export const batchesError = defineErrors('batches', {
  not_found: { status: 404, when: 'no batch has this id' },
  finished: { status: 400, when: 'the batch to cancel has already finished' },
  too_many: { status: 429, heals: true, when: 'the limit of unfinished batches is reached' }
})
