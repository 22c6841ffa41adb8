export { isTextModel } from './text-model.js'
