import { defineErrors } from 'svc-gateway/plugin'

export const realtimeError = defineErrors('realtime', {
  no_slot: { status: 404, when: 'no slot or upstream listens, answers or speaks as the session needs' },
  no_calls: { status: 501, when: 'a session is requested over WebRTC or SIP: only WebSockets are supported' },
  no_beta_sessions: { status: 501, when: 'a session is to be created in advance, as in the beta of the API' },
  unsupported: { status: 400, when: 'an event, or one of its fields, is part of the API but not supported here' },
  response_active: { status: 409, when: 'a response is requested while another one is in progress' },
  no_response: { status: 409, when: 'the response to cancel is not in progress' },
  too_little_audio: { status: 400, when: 'the audio buffer is committed with less than 100 ms in it' },
  item_not_found: { status: 404, when: 'the conversation has no item of this id' },
  item_exists: { status: 409, when: 'the conversation already has an item of this id' },
  full: { status: 413, when: 'the session has reached its size limit' },
  engine_refused: { status: 502, when: 'an engine refused a request of the session' },
  not_sound: { status: 502, when: 'a speech engine answered with audio that is neither WAV nor raw samples' },
  secret_unknown: { status: 401, when: 'a client secret was not issued by this gateway, or has expired' },
  expired: { status: 408, when: 'the session has reached its time limit' }
})
