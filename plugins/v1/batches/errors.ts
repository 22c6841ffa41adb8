import { defineErrors } from 'svc-gateway/plugin'

export const batchesError = defineErrors('batches', {
  not_found: { status: 404, when: 'there is no batch of this id' },
  finished: { status: 400, when: 'a batch that is over is to be cancelled' },
  too_many: { status: 429, heals: true, when: 'as many batches are not over yet as the gateway keeps' }
})
