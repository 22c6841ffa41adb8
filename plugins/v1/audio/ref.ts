export { speechDefaults } from './speech.js'
