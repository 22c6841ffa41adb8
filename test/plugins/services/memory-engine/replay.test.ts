import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../../../repository.js'
import { consolidating, completion, form, type Asked } from './models-support.js'
import { shapeDifferences } from './shape-differences.js'
import { bytesOf, noModels, openEngine } from './support.js'

/**
 * A request that an unmodified client sent to a Hindsight 1.1.0 server, and what that answered. Every recorded one is here, with
 * repeated polls. Of a list the first two items are kept, of a text the first 300 characters. Null is a file, or one of the nine
 * answers that the recording broke off after 6,000 characters: of those only the status is compared.
 */
interface Exchange {
  readonly client: 'npm' | 'python'
  readonly method: string
  readonly url: string
  readonly type: string | null
  /** Null for a form. */
  readonly body: string | null
  readonly status: number
  readonly answer: unknown
}

/** An exchange that is meant to end differently: the status here, and where the shape differs. */
interface Meant {
  readonly why: string
  readonly status: number
  readonly shape: readonly string[]
}

/** By client, method and address. One that differs in another way, or no longer, fails. */
const meant: Readonly<Record<string, Meant>> = {
  'npm: GET /v1/default/banks/npmbank/entities/0ad62f0b-77c7-4aef-9e80-2b22597f0448': {
    why: 'there, the model found an entity in its own prompt',
    status: 404,
    shape: [
      ...['id', 'canonical_name', 'mention_count', 'first_seen', 'last_seen', 'metadata', 'observations'].map(name => `.${name} is missing`),
      '.detail is new'
    ]
  },
  'python: POST /v1/default/banks/pybank/mental-models/mm-f746ce8fb666499da1d982516a8324e2/dry-run-refresh': {
    why: 'there, the test’s model answered a structured document with nonsense; here a document is Markdown',
    status: 200,
    shape: ['.detail is missing', ...[
      'mental_model_id', 'name', 'requested_mode', 'effective_mode', 'mode_fallback_reason', 'outcome', 'delta_operations',
      'retraction', 'would_persist', 'scope', 'window', 'facts', 'based_on', 'current_content', 'candidate_content',
      'preview_content', 'diff', 'trace', 'usage', 'duration_ms', 'warnings'
    ].map(name => `.${name} is new`)]
  }
}

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?:mm|kf|kp)-[0-9a-f]{32}/g
/** Which of our ids stands for which of theirs. */
class Ids {
  readonly #known = new Map<string, string>()

  learn (want: unknown, got: unknown): void {
    if (typeof want === 'string' && typeof got === 'string') {
      if (want.startsWith('/v1/default/files/')) this.#known.set(want, got)
      const [a, b] = [want.match(ID) ?? [], got.match(ID) ?? []]
      if (a.length === b.length) a.forEach((id, n) => this.#known.set(id, b[n]!))
    } else if (typeof want === 'object' && want !== null && typeof got === 'object' && got !== null) {
      for (const [name, value] of Object.entries(want)) this.learn(value, (got as Record<string, unknown>)[name])
    }
  }

  translate (text: string): string {
    return this.#known.get(text) ?? text.replaceAll(ID, id => this.#known.get(id) ?? id)
  }
}

t.test('recorded requests of unmodified clients are answered with the same status and shape', async t => {
  const { engine } = openEngine(t, {
    abilities: () => ({ ...noModels, chat: { model: 'm', why: null } }),
    run: errand => {
      const { messages } = JSON.parse(Buffer.from((errand as { readonly body: Uint8Array }).body).toString()) as Asked
      return messages.at(-1)!.content.includes('NEW FACTS') ? consolidating(errand) : Promise.resolve(completion('{}'))
    }
  })
  const lines = readFileSync(join(root, 'test/plugins/services/memory-engine/exchanges.jsonl'), 'utf8').trim().split('\n')
  const ids = new Ids()
  const notMet = new Set(Object.keys(meant))
  const [fileBody, fileHeaders] = form('files', 'n.md', Buffer.from('# Notes\nGrace met Heidi in Paris.'), 'text/markdown')
  for (const line of lines) {
    const { client, method, url, type, body, status, answer } = JSON.parse(line) as Exchange
    const [path = '', query = ''] = ids.translate(url).split('?')
    const isForm = type === 'multipart/form-data'
    const send = async (): Promise<{ readonly status: number, readonly value: unknown }> => {
      const got = await engine.request({
        method, path, query, signal: new AbortController().signal, headers: isForm ? fileHeaders : type === null ? {} : { 'content-type': type },
        body: isForm ? fileBody : body === null || body === '' ? null : Buffer.from(ids.translate(body))
      })
      return { status: got.status, value: got.headers['content-type'] === 'application/zip' ? null : JSON.parse((await bytesOf(got)).toString()) as unknown }
    }
    let got = await send()
    const statusOf = (value: unknown): unknown => (value as { readonly status?: unknown } | null)?.status
    while (statusOf(answer) === 'completed' && ['pending', 'processing'].includes(statusOf(got.value) as string)) got = await send()
    ids.learn(answer, got.value)
    const name = `${client}: ${method} ${url}`
    const other = meant[name]
    notMet.delete(name)
    t.same(
      { status: got.status, shape: shapeDifferences(answer, got.value) },
      { status: other?.status ?? status, shape: other?.shape ?? [] },
      other === undefined ? name : `${name}: ${other.why}`
    )
    if (statusOf(answer) === 'completed') t.equal(statusOf(got.value), 'completed', name)
  }
  t.same([...notMet], [], 'every exchange that is meant to differ was recorded')
})
