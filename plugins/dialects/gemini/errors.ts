import { defineErrors } from 'svc-gateway/plugin'

export const geminiError = defineErrors('gemini', {
  not_here: { status: 501, when: 'a request needs a part of the API that the gateway does not have, such as files or caches' }
})
