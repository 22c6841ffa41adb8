import { request } from 'undici'
import type { Abilities } from '../../../plugins/services/memory-engine/messages.js'

/** A server of models. */
export interface Models {
  /** Base URL of an OpenAI-compatible server; null for none. */
  readonly url: string | null
  /** Null if it serves the step, else why not. */
  readonly vectors: string | null
  readonly rerank: string | null
}

export const EMBED_MODEL = 'minilm'
export const RERANK_MODEL = 'rerank'

/** The order is measured, and not how fast models are. */
const PATIENCE_MS = 120_000
export const none = { model: null, why: 'not in this run' } as const
export const NO_ABILITIES: Abilities = {
  embed: none, rerank: none, chat: none, patience: { embedMs: PATIENCE_MS, rerankMs: PATIENCE_MS }
}

/** Asks it once for each. */
export async function modelsAt (url: string | undefined): Promise<Models> {
  if (url === undefined) return { url: null, vectors: 'SVC_BENCH_MODELS is not set', rerank: 'SVC_BENCH_MODELS is not set' }
  const vectors = await missing(`${url}/embeddings`, { model: EMBED_MODEL, input: ['tea'] }, 'data')
  const rerank = await missing(`${url}/rerank`, { model: RERANK_MODEL, query: 'tea', documents: ['tea', 'rain'] }, 'results')
  return { url, vectors, rerank }
}

/** Why an address does not answer with that list; null if it does. */
async function missing (url: string, body: object, list: string): Promise<string | null> {
  try {
    const { statusCode, body: answer } = await request(url, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body)
    })
    const text = await answer.text()
    if (statusCode !== 200) return `${url} answers ${statusCode}`
    return Array.isArray((JSON.parse(text) as Record<string, unknown>)[list]) ? null : `${url} answers without ${list}`
  } catch (error) {
    // what could not connect to any of several addresses has a code and no message
    const { code, message } = error as NodeJS.ErrnoException
    return `${url}: ${message || code}`
  }
}
