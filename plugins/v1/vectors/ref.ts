export { askVectors, type Vectors } from './ask.js'
