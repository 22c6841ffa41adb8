import { defineErrors } from 'svc-gateway/plugin'

export const modelError = defineErrors('model', {
  invalid_source: { status: 422, when: 'no source is known for the model, or the source does not hold exactly one model' },
  insufficient_disk: { status: 507, when: 'the files of the model do not fit on the disk' },
  pull_conflict: { status: 409, when: 'other files are being pulled under this id, or to the same place' },
  pull_job_not_found: { status: 404, when: 'the model was never pulled' },
  pull_cancelled: { status: 409, when: 'the pull was cancelled' },
  pull_failed: { status: 500, when: 'the files of a pull cannot be written, or an engine could not fetch its model' }
})

export const pullError = defineErrors('pull', {
  checksum_mismatch: { status: 502, heals: true, when: 'a pulled file does not match its checksum on the hub' },
  size_mismatch: { status: 502, heals: true, when: 'the size of a file differs from what the hub reports' },
  interrupted: { status: 503, heals: true, when: 'the gateway was stopped during the pull; in snapshots only' }
})
