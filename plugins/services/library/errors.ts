import { defineErrors } from 'svc-gateway/plugin'

export const modelError = defineErrors('model', {
  already_exists: { status: 409, when: 'a model with this id is registered already' },
  path_relative: { status: 400, when: 'the path of a model is not absolute' },
  unsupported_format: { status: 400, when: 'the file is not in a model format' }
})
