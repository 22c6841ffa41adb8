import t, { type Test } from 'tap'
import type { Errand, ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import { noModels, openEngine, type Answer, type Wire } from './support.js'

interface Asked {
  readonly query: string
  readonly signal: AbortSignal
}

interface Bank {
  readonly call: Wire['call']
  readonly engine: Wire['engine']
  /** Questions whose vector was asked for. */
  readonly asked: Asked[]
  /** What the model does with the next ones. */
  answer: (signal: AbortSignal) => Promise<void>
}

async function openBank (t: Test): Promise<Bank> {
  const asked: Asked[] = []
  const run = async (errand: Errand, signal: AbortSignal): Promise<ErrandAnswer> => {
    const { input } = JSON.parse(Buffer.from(errand.body).toString('utf8')) as { readonly input: readonly string[] }
    if ('background' in errand && !errand.background) {
      asked.push({ query: input[0]!, signal })
      await bank.answer(signal)
    }
    const data = input.map((text, index) => ({ index, embedding: [1, text.length, 1] }))
    return { status: 200, body: Buffer.from(JSON.stringify({ data })) }
  }
  const { call, engine } = openEngine(t, { abilities: () => ({ ...noModels, embed: { model: 'm', why: null } }), run })
  const bank: Bank = { call, engine, asked, answer: () => Promise.resolve() }
  await call('POST', 'b/memories', { items: [{ content: 'Otters swim.' }] })
  for (;;) if ((await call('GET', 'b/embeddings')).body.pending === 0) break
  t.equal((await recalled(bank, 'first')).headers['x-svc-recall'], 'text+vectors')
  return bank
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
function recalled ({ call }: Bank, query: string, bank = 'b'): Promise<Answer<any>> {
  return call('POST', `${bank}/memories/recall`, { query })
}

t.test('the vector of a question is asked for once, and is that of this question however many come at once', async t => {
  const bank = await openBank(t)
  const queries = Array.from({ length: 20 }, (_, i) => `otters ${'x'.repeat(i)}`)
  const answers = await Promise.all(queries.map(query => recalled(bank, query)))
  t.same(bank.asked.map(({ query }) => query).sort(), ['first', ...queries].sort())
  for (const { headers, body } of answers) {
    t.equal(headers['x-svc-recall'], 'text+vectors')
    t.match(body.results, [{ text: 'Otters swim.' }])
  }
  t.equal(new Set(answers.map(({ body }) => body.results[0].scores.semantic)).size, queries.length)
})

t.test('it is asked for before the engine has read the question, and taken back where the engine does not ask', async t => {
  const bank = await openBank(t)
  t.equal((await recalled(bank, 'second', 'no-such-bank')).status, 404)
  t.match(bank.asked.at(-1), { query: 'second', signal: { aborted: true } })
  await recalled(bank, 'third', 'no-such-bank')
  t.equal(bank.asked.length, 2, 'and not again until it does')
  await recalled(bank, 'fourth')
  await recalled(bank, 'fifth')
  t.match(bank.asked.slice(2), [{ query: 'fourth', signal: { aborted: false } }, { query: 'fifth', signal: { aborted: false } }])
})

t.test('a client that leaves takes it back, and one that stays is answered by words where the model fails', async t => {
  const bank = await openBank(t)
  const left = new AbortController()
  bank.answer = signal => new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error))
    left.abort(new Error('the client left'))
  })
  const body = Buffer.from(JSON.stringify({ query: 'otters of one who leaves' }))
  const headers = { 'content-type': 'application/json' }
  await t.rejects(bank.engine.request({
    method: 'POST', path: '/v1/default/banks/b/memories/recall', query: '', headers, body, signal: left.signal
  }), { message: 'the client left' })
  t.match(bank.asked.at(-1), { query: 'otters of one who leaves', signal: { aborted: true } })
  bank.answer = () => Promise.reject(new Error('out of order'))
  await recalled(bank, 'otters')
  const { headers: told, body: found } = await recalled(bank, 'otters that swim')
  t.equal(told['x-svc-recall'], 'text')
  t.match(found.results, [{ text: 'Otters swim.' }])
})
