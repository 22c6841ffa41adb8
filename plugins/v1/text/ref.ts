export { thinkingEdits } from './thinking.js'
