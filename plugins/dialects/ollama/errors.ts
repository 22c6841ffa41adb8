import { defineErrors } from 'svc-gateway/plugin'

export const ollamaError = defineErrors('ollama', {
  not_here: { status: 501, when: 'a request needs a part of Ollama that the gateway does not have, such as its registry' },
  name_taken: { status: 409, when: 'a name that is to be made belongs to a slot or model already' },
  pull_ended: { status: 500, when: 'a pull that was followed failed or was cancelled' }
})
