import { defineErrors } from 'svc-gateway/plugin'

export const stacksError = defineErrors('stacks', {
  not_found: { status: 404, when: 'no stack has this slug' },
  exists: { status: 409, when: 'a stack with this slug exists' },
  invalid_name: { status: 409, when: 'no stack can have this slug' },
  seed_immutable: { status: 409, when: 'a built-in stack is to be changed' },
  bad_envelope: { status: 400, when: 'an envelope, or its checksum, is no stack' },
  envelope_too_new: { status: 400, when: 'the envelope has a newer format than this release knows' },
  import_no_slug: { status: 400, when: 'an import names no slug for the stack' },
  would_break: { status: 409, when: 'applying the stack would leave a slot that serves unable to come up' },
  superseded: { status: 409, when: 'another stack was applied while this one was still being put into force' }
})
