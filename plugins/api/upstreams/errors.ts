import { defineErrors } from 'svc-gateway/plugin'

export const upstreamError = defineErrors('upstream', {
  protected: { status: 400, when: 'that part of an upstream cannot be changed' }
})

export const providerError = defineErrors('provider', {
  credential_write_failed: { status: 400, when: 'the key of a provider cannot be written' }
})
