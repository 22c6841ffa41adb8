import { defineErrors } from 'svc-gateway/plugin'

export const profilesError = defineErrors('profiles', {
  exists: { status: 409, when: 'a new profile has the name of another one' },
  in_use: { status: 409, when: 'slots use the profile that is to go, or would not suit it any more' },
  bad_envelope: { status: 400, when: 'an envelope is no profile envelope, or its checksum is wrong' },
  import_no_name: { status: 400, when: 'a profile is imported without a name' }
})
