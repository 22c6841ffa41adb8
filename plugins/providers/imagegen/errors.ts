import { defineErrors } from 'svc-gateway/plugin'

export const imageError = defineErrors('image', {
  model_not_curated: { status: 404, when: 'the model is not a curated image model' },
  workflow_not_found: { status: 404, when: 'no workflow supports the image model' },
  workflow_invalid: { status: 422, when: 'a workflow file cannot be used' }
})

export const comfyuiError = defineErrors('comfyui', {
  workflow_not_found: { status: 404, when: 'the image engine has no workflow of this name' },
  workflow_read_error: { status: 500, when: 'the file of a workflow cannot be read' },
  image_fetch_failed: { status: 404, when: 'the image engine does not return its newest image' }
})
