export { fillInMiddle } from './fill-in-middle.js'
