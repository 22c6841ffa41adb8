import { defineErrors } from 'svc-gateway/plugin'

export const personaError = defineErrors('persona', {
  not_found: { status: 404, when: 'the agent has no such persona' },
  malformed: { status: 400, when: 'the body of a persona is not a JSON object' },
  invalid: { status: 400, when: 'a persona has an invalid or unknown field' },
  write_failed: { status: 500, when: 'personas.toml cannot be written' },
  seed_stays: { status: 409, when: 'a request would remove a built-in persona that was never changed' },
  active_stays: { status: 409, when: 'a request would remove the active persona' },
  reload_url_refused: { status: 400, when: 'the reload address is neither on this machine nor in `reload_hosts`' }
})
