import type { Engine } from './engine.js'
import type { Call, Handler } from './http-server.js'
import { applyTemplate, detokenize, metrics, models, props, slots, tokenize } from './status-routes.js'
import { chatCompletions, completions } from './text-routes.js'
import { embeddings, rerank } from './vector-routes.js'
import { notSupported, WireError } from './wire-error.js'

type EngineHandler = (engine: Engine, call: Call) => unknown

/** A route that only an engine started for it answers; the others say how to get one. */
function only<K extends Engine['kind']> (
  kind: K, handler: (engine: Extract<Engine, { kind: K }>, call: Call) => unknown
): EngineHandler {
  return (engine, call) => {
    if (engine.kind !== kind) throw wrongMode(kind)
    return handler(engine as Extract<Engine, { kind: K }>, call)
  }
}

function wrongMode (kind: Engine['kind']): WireError {
  switch (kind) {
    case 'text': return new WireError(501, 'not_supported_error', 'This server does not support completions. Start it without `--embeddings` and `--reranking`')
    case 'embedding': return notSupported('embeddings', '--embeddings')
    case 'reranking': return notSupported('reranking', '--reranking')
  }
}

const absent = (path: string): EngineHandler => () => {
  throw new WireError(501, 'not_supported_error', `The embedded engine does not serve ${path}; install llama-server to use it`)
}

/** What answers at a method and path. */
const table: Readonly<Record<string, EngineHandler>> = {
  'GET /health': () => ({ status: 'ok' }),
  'GET /v1/health': () => ({ status: 'ok' }),
  'GET /v1/models': models,
  'GET /models': models,
  'GET /slots': slots,
  'GET /metrics': metrics,
  'GET /props': props,
  'POST /tokenize': tokenize,
  'POST /detokenize': detokenize,
  'POST /apply-template': only('text', applyTemplate),
  'POST /v1/chat/completions': only('text', chatCompletions),
  'POST /chat/completions': only('text', chatCompletions),
  'POST /v1/completions': only('text', completions),
  'POST /v1/embeddings': only('embedding', embeddings),
  'POST /v1/rerank': only('reranking', rerank),
  'POST /v1/rerankings': only('reranking', rerank),
  'POST /v1/reranking': only('reranking', rerank),
  'POST /rerank': only('reranking', rerank),
  'POST /infill': absent('/infill'),
  'POST /v1/responses': absent('/v1/responses'),
  'POST /v1/messages': absent('/v1/messages'),
  'POST /v1/messages/count_tokens': absent('/v1/messages/count_tokens')
}

/** @param current the engine, or null while it loads: every known route then answers 503. */
export function createRouter (current: () => Engine | null): (method: string, path: string) => Handler | 'loading' | null {
  return (method, path) => {
    const handler = Object.hasOwn(table, `${method} ${path}`) ? table[`${method} ${path}`]! : null
    if (handler === null) return null
    const engine = current()
    return engine === null ? 'loading' : call => handler(engine, call)
  }
}
