import { defineErrors } from 'svc-gateway/plugin'

export const profilesError = defineErrors('profiles', {
  exists: { status: 409, when: 'a new profile has the name of another one' },
  in_use: { status: 409, when: 'slots use the profile to be deleted, or would no longer fit the changed one' },
  bad_envelope: { status: 400, when: 'an envelope is not a profile envelope, or its checksum is wrong' },
  import_no_name: { status: 400, when: 'a profile is imported without a name' }
})
