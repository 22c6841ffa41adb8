import { defineErrors } from 'svc-gateway/plugin'

export const hfError = defineErrors('hf', {
  bad_request: { status: 400, when: 'what was requested cannot exist on the hub' },
  repo_not_found: { status: 404, when: 'the hub has no such repository, or hides it' },
  file_not_found: { status: 404, when: 'the repository has no such file or revision' },
  gated: { status: 403, when: 'the licence of the repository has to be accepted first' },
  token_rejected: { status: 403, when: 'the hub does not accept the token' },
  rate_limited: { status: 503, heals: true, when: 'the rate limit of the hub is reached' },
  unreachable: { status: 502, heals: true, when: 'the hub cannot be reached' },
  upstream_error: { status: 502, heals: true, when: 'the hub, or the storage behind it, answers with something unexpected' }
})
