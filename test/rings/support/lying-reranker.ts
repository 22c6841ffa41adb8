import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface Ranked {
  readonly index: number
  readonly relevance_score: number
}

/** What becomes of an engine's results on their way; a text is the whole answer. */
export type Lie = (results: readonly Ranked[], answer: string) => unknown

/** Stands between the gateway and an engine that ranks. */
export interface Between {
  readonly url: string
  /** Null passes on what the engine says, `half` sends half of it and nothing more. */
  say (lie: Lie | 'half' | null): void
}

const firstScore = (token: string): Lie => (_, answer) => answer.replace(/"relevance_score":\s*[-+\d.e]+/, `"relevance_score":${token}`)

/** Answers made of a real one that cannot be used, and what is said of each. */
export const lies: Readonly<Record<string, readonly [lie: Lie, why: RegExp]>> = {
  'too few': [results => results.slice(1), /no score/],
  'none': [() => [], /no score/],
  'too many': [results => [...results, { index: results.length, relevance_score: 1 }], /no score/],
  'no list': [results => ({ ...results }), /no score/],
  'indexes out of range': [results => results.map(each => ({ ...each, index: each.index + results.length })), /an index that/],
  'indexes counted from one': [results => results.map(each => ({ ...each, index: each.index + 1 })), /an index that/],
  'indexes below zero': [results => results.map(each => ({ ...each, index: -1 - each.index })), /an index that/],
  'half an index': [results => results.map(each => ({ ...each, index: each.index + 0.5 })), /an index that/],
  'indexes as texts': [results => results.map(each => ({ ...each, index: String(each.index) })), /an index that/],
  'the same index twice': [results => results.map(each => ({ ...each, index: each.index === 1 ? 0 : each.index })), /an index that/],
  'null for a score': [results => results.map(each => ({ ...each, relevance_score: null })), /a score that/],
  'scores as texts': [results => results.map(each => ({ ...each, relevance_score: String(each.relevance_score) })), /a score that/],
  'a score missing': [results => results.map((each, i) => i === 1 ? { index: each.index } : each), /a score that/],
  'a score beyond all bounds': [firstScore('1e999'), /a score that/],
  'NaN': [firstScore('NaN'), /no JSON/],
  'half an answer': [(_, answer) => answer.slice(0, answer.length / 2), /no JSON/]
}

/** @param engine base URL of the engine, without `/v1` */
export async function between (t: Test, engine: string): Promise<Between> {
  let lie: Lie | 'half' | null = null
  const pass = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const answer = await fetch(engine + request.url!, {
      method: request.method!, headers: { 'content-type': 'application/json' },
      ...request.method === 'POST' ? { body: Buffer.concat(chunks) } : {}
    })
    const text = await answer.text()
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    if (request.method !== 'POST' || !answer.ok || lie === null) return void response.end(text)
    if (lie === 'half') return void response.write(text.slice(0, text.length / 2))
    const honest = JSON.parse(text) as { readonly results: readonly Ranked[] }
    const told = lie(honest.results, text)
    response.end(typeof told === 'string' ? told : JSON.stringify({ ...honest, results: told }))
  }
  const server = createServer((request, response) => {
    pass(request, response).catch((error: unknown) => response.writeHead(502).end(String(error)))
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => { server.close().closeAllConnections() })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    say: told => { lie = told }
  }
}
