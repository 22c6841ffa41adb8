import { defineErrors } from 'svc-gateway/plugin'

export const chatTemplateError = defineErrors('chat_template', {
  not_found: { status: 404, when: 'no chat template has this id' },
  invalid_id: { status: 400, when: 'a chat template has an id that is not a valid file name' },
  in_use: { status: 409, when: 'slots use the chat template to be deleted' },
  busy: { status: 503, heals: true, when: 'too many chat templates are waiting to be checked' },
  write_failed: { status: 400, when: 'a chat template cannot be written to the model store' }
})
