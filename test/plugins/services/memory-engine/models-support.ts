import type { Test } from 'tap'
import type { Errand, ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import { ZipWriter } from '../../../../plugins/services/memory-engine/transfer/zip-writer.js'
import { noModels, openEngine, type Wire } from './support.js'

export interface Asked {
  readonly messages: ReadonlyArray<{ readonly role: string, readonly content: string }>
  readonly response_format?: { readonly type: string }
  readonly max_tokens: number
}

/** An answer of `/v1/chat/completions` with this text. */
export function completion (text: string, tokens = 10): ErrandAnswer {
  const answer = { model: 'm', choices: [{ message: { role: 'assistant', content: text } }], usage: { prompt_tokens: tokens, completion_tokens: tokens } }
  return { status: 200, body: Buffer.from(JSON.stringify(answer)) }
}

/** An engine whose language model says what `reply` does; other errands go to `other`. */
export function openWithChat (
  t: Test, reply: (asked: Asked) => string | ErrandAnswer | Promise<string | ErrandAnswer>,
  options: Parameters<typeof openEngine>[1] = {},
  other: (errand: Errand) => Promise<ErrandAnswer> = () => Promise.reject(new Error('no answer'))
): Wire {
  return openEngine(t, {
    abilities: () => ({ ...noModels, chat: { model: 'm', why: null } }),
    run: async errand => {
      if (errand.to !== 'chat') return await other(errand)
      const said = await reply(JSON.parse(Buffer.from(errand.body).toString()) as Asked)
      return typeof said === 'string' ? completion(said) : said
    },
    ...options
  })
}

/** An operation when it is over. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
export async function over (call: Wire['call'], bank: string, id: string): Promise<any> {
  for (;;) {
    const { body } = await call('GET', `${bank}/operations/${id}`)
    if (body.status !== 'pending' && body.status !== 'processing') return body
    if (body.next_retry_at !== null) return body
  }
}

/** A ZIP archive that is made in memory. */
export function zipInMemory (): { readonly add: (name: string, bytes: Buffer) => void, readonly end: () => Buffer } {
  const [data, directory]: [Buffer[], Buffer[]] = [[], []]
  const zip = new ZipWriter({ data: bytes => data.push(bytes), directory: bytes => directory.push(bytes) })
  return {
    add: (name, bytes) => zip.add(name, bytes),
    end: () => {
      zip.end()
      return Buffer.concat([...data, ...directory])
    }
  }
}

/** A `multipart/form-data` body of one file, and its header. */
export function form (name: string, filename: string, bytes: Buffer, type = 'application/zip'): [Buffer, Record<string, string>] {
  const head = `--X\r\ncontent-disposition: form-data; name="${name}"; filename="${filename}"\r\ncontent-type: ${type}\r\n\r\n`
  return [Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n--X--\r\n')]), { 'content-type': 'multipart/form-data; boundary=X' }]
}

/** The fact that `consolidating` finds in any text, and what it writes about any question. */
export const FACT = 'It was told.'
export const DOCUMENT = 'A document.'

/** Does what `run` of an engine is asked: one observation of all the facts, one fact of any text, a document, and vectors. */
export function consolidating (errand: Errand): Promise<ErrandAnswer> {
  if (errand.to === 'embed') {
    const { model, input } = JSON.parse(Buffer.from(errand.body).toString()) as { model: string, input: readonly string[] }
    const data = input.map((text, index) => ({ index, embedding: [text.length, 1, model.length] }))
    return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ data })) })
  }
  if (errand.to !== 'chat') return Promise.reject(new Error('no answer'))
  const { messages } = JSON.parse(Buffer.from(errand.body).toString()) as Asked
  if (messages[0]!.content.startsWith('You extract facts')) return Promise.resolve(completion(JSON.stringify({ facts: [{ text: FACT }] })))
  if (!messages.at(-1)!.content.includes('NEW FACTS')) return Promise.resolve(completion(DOCUMENT))
  const ids = [...messages.at(-1)!.content.split('NEW FACTS')[1]!.matchAll(/\[([0-9a-f-]{36})\]/g)].map(([, id]) => id)
  return Promise.resolve(completion(JSON.stringify({ creates: [{ text: 'Numbers.', source_fact_ids: ids }] })))
}

/** Answers of a reranker that cannot be used, of three documents: a text is sent as it is. */
export const rerankerLies: Readonly<Record<string, (query: string, documents: readonly string[]) => unknown>> = {
  'too few': () => ({ results: [{ index: 2, relevance_score: 1 }] }),
  'wrong indexes': (_, documents) => ({ results: documents.map((_, i) => ({ index: i + 7, relevance_score: i })) }),
  'too many': (_, documents) => ({ results: [...documents, 'one more'].map((_, index) => ({ index, relevance_score: 1 })) }),
  'indexes below zero, or none': (_, documents) => ({ results: documents.map((_, i) => i === 0 ? { relevance_score: 1 } : { index: -i, relevance_score: i }) }),
  'half an index': (_, documents) => ({ results: documents.map((_, i) => ({ index: i + 0.5, relevance_score: i })) }),
  'no list': () => ({ results: { length: 3 } }),
  'the same twice': (_, documents) => ({ results: documents.map((_, i) => ({ index: 2, relevance_score: i })) }),
  'no numbers': (_, documents) => ({ results: documents.map((_, index) => ({ index, relevance_score: null })) }),
  'texts for numbers': (_, documents) => ({ results: documents.map((_, index) => ({ index, relevance_score: String(index) })) }),
  'a number beyond all bounds': () => '{"results":[{"index":0,"relevance_score":1e999},{"index":1,"relevance_score":1},{"index":2,"relevance_score":2}]}',
  'NaN': () => '{"results":[{"index":0,"relevance_score":NaN},{"index":1,"relevance_score":1},{"index":2,"relevance_score":2}]}',
  'no JSON': () => 'NaN…'
}
