import { defineErrors } from 'svc-gateway/plugin'

export const personaError = defineErrors('persona', {
  not_found: { status: 404, when: 'the agent has no persona of this name' },
  malformed: { status: 400, when: 'the body of a persona is no JSON object' },
  invalid: { status: 400, when: 'a persona has a field that is wrong or unknown' },
  write_failed: { status: 500, when: 'personas.toml cannot be written' },
  seed_stays: { status: 409, when: 'a built-in persona that was never changed is to be removed' },
  active_stays: { status: 409, when: 'the persona that is active is to be removed' },
  reload_url_refused: { status: 400, when: 'the address that is to be told of a new persona is not on this machine, nor among `reload_hosts`' }
})
