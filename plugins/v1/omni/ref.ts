export { readAll } from './engine-call.js'
export { requireOwnPage } from './own-page.js'
export { streamEvents } from './sse-events.js'
export { slotFor } from './tool.js'
