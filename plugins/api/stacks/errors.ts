import { defineErrors } from 'svc-gateway/plugin'

export const stacksError = defineErrors('stacks', {
  not_found: { status: 404, when: 'no stack has this slug' },
  exists: { status: 409, when: 'a stack with this slug exists' },
  invalid_name: { status: 409, when: 'the slug is not valid' },
  seed_immutable: { status: 409, when: 'a request would change a built-in stack' },
  bad_envelope: { status: 400, when: 'an envelope is not a stack envelope, or its checksum is wrong' },
  envelope_too_new: { status: 400, when: 'the envelope has a newer format than this release knows' },
  import_no_slug: { status: 400, when: 'an import has no slug for the stack' },
  would_break: { status: 409, when: 'applying the stack would leave a serving slot unable to start' },
  superseded: { status: 409, when: 'another stack was applied while this one was still being applied' }
})
