import { defineErrors } from 'svc-gateway/plugin'

export const ollamaError = defineErrors('ollama', {
  not_here: { status: 501, when: 'a request needs an unsupported part of Ollama, such as its registry' },
  name_taken: { status: 409, when: 'a new name already belongs to a slot or model' },
  pull_ended: { status: 500, when: 'a pull that was followed failed or was cancelled' }
})
