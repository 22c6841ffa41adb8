import { defineErrors } from 'svc-gateway/plugin'

export const geminiError = defineErrors('gemini', {
  not_here: { status: 501, when: 'a request needs an unsupported part of the API, such as files or caches' }
})
