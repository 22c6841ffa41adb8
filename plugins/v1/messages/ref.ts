export { countTokens, ESTIMATE_HEADER, type TokenCount } from './count.js'
