import { defineErrors } from 'svc-gateway/plugin'

export const updateError = defineErrors('system', {
  update_busy: { status: 409, when: 'an update or a rollback is under way' },
  update_download_failed: { status: 502, when: 'a release could not be downloaded completely' },
  update_editable_install: { status: 409, when: 'the gateway cannot update this kind of installation; the message says what to do instead' },
  update_error: { status: 500, when: 'the release channel cannot be read' },
  update_extract_failed: { status: 500, when: 'the archive of a release cannot be unpacked, or has unexpected contents' },
  update_interrupted: { status: 500, when: 'the gateway stopped during an update that it could not resume' },
  update_job_not_found: { status: 404, when: 'no update has this id' },
  update_manifest_invalid: { status: 400, when: 'the manifest of a release cannot be used: its schema, its channel, its version' },
  update_refused: { status: 409, when: 'the release is revoked, older than this one, or requires another one first' },
  update_returned: { status: 500, when: 'the new release did not answer within its time, so the gateway went back' },
  update_rollback_unavailable: { status: 400, when: 'there is no earlier release to go back to' },
  update_swap_failed: { status: 500, when: 'the link to the release in use cannot be changed' },
  update_trial_failed: { status: 409, when: 'the new release cannot take over this home: its configuration, its database or its plugins' },
  update_unconfigured: { status: 409, when: 'this installation does not know where releases come from' },
  update_verify_failed: { status: 400, when: 'a download does not match its manifest, or this installation does not trust its signature' }
})
