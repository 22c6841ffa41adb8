import { buffer } from 'node:stream/consumers'
import { request } from 'undici'
import type { EmbeddedEngine } from '../../../plugins/services/memory-engine/embedded-engine.js'
import type { Errand, ErrandAnswer } from '../../../plugins/services/memory-engine/messages.js'

export interface WireAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
  readonly body: any
}
/** A path below `/v1/default/banks/`. */
export type Call = (method: string, path: string, body?: unknown) => Promise<WireAnswer>

export function callsOf (engine: EmbeddedEngine): Call {
  return async (method, target, body) => {
    const [path = '', query = ''] = `/v1/default/banks/${target}`.split('?')
    const sent = body === undefined ? null : Buffer.from(JSON.stringify(body))
    const headers = { 'content-type': 'application/json' }
    const answer = await engine.request({ method, path, query, headers, body: sent, signal: new AbortController().signal })
    return { status: answer.status, headers: answer.headers, body: JSON.parse((Buffer.isBuffer(answer.body) ? answer.body : await buffer(answer.body)).toString('utf8')) }
  }
}

/** Sends errands to an OpenAI-compatible address. */
export function errandsTo (base: string): (errand: Errand, signal: AbortSignal) => Promise<ErrandAnswer> {
  const paths = { embed: '/embeddings', rerank: '/rerank', chat: '/chat/completions', web: '' }
  return async (errand, signal) => {
    const { statusCode, body } = await request(`${base}${paths[errand.to]}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: Buffer.from(errand.body), signal
    })
    return { status: statusCode, body: Buffer.from(await body.arrayBuffer()) }
  }
}

/** Whether recalls of a bank look at what stands beside a find, or was kept beside it. */
export async function lookAtLinks (call: Call, id: string, isOn: boolean): Promise<void> {
  await configure(call, id, { enable_graph_retrieval: isOn })
}

export async function configure (call: Call, id: string, updates: Readonly<Record<string, boolean | string>>): Promise<void> {
  await call('PATCH', `${id}/config`, { updates })
}

/** Resolves when every memory of the bank has its vector. */
export async function vectorsMade (call: Call, id: string): Promise<void> {
  for (;;) {
    const { body } = await call('GET', `${id}/embeddings`)
    if (body.pending === 0) return
    await new Promise(resolve => setTimeout(resolve, 200))
  }
}
