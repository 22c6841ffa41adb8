import { defineErrors } from 'svc-gateway/plugin'

export const realtimeError = defineErrors('realtime', {
  no_slot: { status: 404, when: 'nothing here hears, answers or speaks as the session needs it' },
  no_calls: { status: 501, when: 'a session is asked for by WebRTC or SIP: only WebSockets are spoken' },
  no_beta_sessions: { status: 501, when: 'a session is to be made beforehand as the beta of the API had it' },
  unsupported: { status: 400, when: 'an event, or one of its fields, is part of the API but not supported here' },
  response_active: { status: 409, when: 'a response is asked for while another one is being made' },
  no_response: { status: 409, when: 'a response is cancelled that is not being made' },
  too_little_audio: { status: 400, when: 'the audio buffer is committed with less than 100 ms in it' },
  item_not_found: { status: 404, when: 'the conversation has no item of this id' },
  item_exists: { status: 409, when: 'the conversation has an item of this id already' },
  full: { status: 413, when: 'the session holds as much as it may' },
  engine_refused: { status: 502, when: 'an engine refuses what the session asks of it' },
  not_sound: { status: 502, when: 'a speech engine answers with something that is neither WAV nor raw samples' },
  secret_unknown: { status: 401, when: 'a client secret was not issued by this gateway, or has expired' },
  expired: { status: 408, when: 'a session has lasted as long as it may' }
})
