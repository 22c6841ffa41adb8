import { defineErrors } from 'svc-gateway/plugin'

export const responsesError = defineErrors('responses', {
  not_found: { status: 404, when: 'no response is kept under this id' },
  no_conversation: { status: 404, when: 'no conversation is kept under this id, or it has no such item' },
  context_lost: { status: 400, when: 'a response builds on one that was deleted' },
  too_long: { status: 400, when: 'the kept conversation leaves no room for another response' },
  not_background: { status: 400, when: 'the response to cancel was not created in the background' },
  busy: { status: 503, heals: true, when: 'too many responses are being generated in the background or over WebSockets, or replayed' },
  engine_refused: { status: 502, when: 'an engine refused a request of a WebSocket with an error that cannot be passed on unchanged' },
  no_summary: { status: 502, when: 'a model that was asked to summarize a conversation wrote nothing' },
  store_busy: { status: 503, heals: true, when: 'another program holds the database of kept responses' },
  store_failed: { status: 500, when: 'the database of kept responses cannot be used' }
})
