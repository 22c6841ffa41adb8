import { createServiceRef } from 'svc-gateway/plugin'
import type { MemoryEngine } from '../memory/ref.js'

export { rerankerOf } from './errands.js'
export { certain, NO_AGREEMENT, rerankTrust, spread, type Agreement } from './recall/fuse.js'
export { rerankBody, scoresIn } from './recall/model-calls.js'
export { askReranker } from './rerank-gateway.js'

/**
 * The engine that needs nothing beside the gateway. Nothing of it is opened before its first request, and `close` lets go of all
 * that it holds until the next one. Items that are retained without a `document_id` and have the text and tags of a memory
 * that is there make no second one; under different document ids, the same text is one memory for each document.
 */
export const embeddedMemoryRef = createServiceRef<MemoryEngine>('memory-engine.embedded')
