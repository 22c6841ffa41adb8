export { deleteModel } from './delete-model.js'
