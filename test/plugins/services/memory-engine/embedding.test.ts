import t, { type Test } from 'tap'
import type { Abilities, ErrandAnswer } from '../../../../plugins/services/memory-engine/messages.js'
import { over } from './models-support.js'
import { noModels, openEngine, type Wire } from './support.js'

interface Model {
  identity: string | null
  /** Answers that it gives before it hangs. */
  left: number
  status: number
  /** Of texts that it is never done with. */
  endless: string | null
  readonly asked: string[]
}

interface Embedding extends Pick<Wire, 'engine' | 'call'> {
  readonly model: Model
  /** Resolves when what hangs is taken back. */
  readonly takenBack: () => Promise<void>
  readonly goOn: () => void
  /** Another model, or none, from now on. */
  readonly becomes: (identity: string | null, how?: Partial<Model>) => void
}

function openEmbedding (t: Test, path?: string, identity: string | null = 'one'): Embedding {
  const model: Model = { identity, left: Infinity, status: 200, endless: null, asked: [] }
  let [goOn, takenBack] = [(): void => {}, Promise.resolve()]
  const hang = (signal: AbortSignal): Promise<void> => new Promise((resolve, reject) => {
    goOn = resolve
    takenBack = new Promise(resolve => signal.addEventListener('abort', () => resolve()))
    signal.addEventListener('abort', () => reject(signal.reason as Error))
  })
  const abilities = (): Abilities => ({
    ...noModels, embed: model.identity === null ? noModels.embed : { model: model.identity, why: null },
    patience: { embedMs: 60_000, rerankMs: 60_000 }
  })
  const { engine, call } = openEngine(t, {
    ...path !== undefined && { path: () => path }, abilities,
    run: async (errand, signal): Promise<ErrandAnswer> => {
      if (errand.to !== 'embed') throw new Error('no answer')
      const { input } = JSON.parse(Buffer.from(errand.body).toString()) as { readonly input: readonly string[] }
      if (errand.background) {
        if (input.some(text => model.endless !== null && text.startsWith(model.endless)) || model.left-- <= 0) await hang(signal)
        model.asked.push(...input)
      }
      const data = input.map((text, index) => ({ index, embedding: [text.length, 1] }))
      return { status: model.status, body: Buffer.from(JSON.stringify({ data })) }
    }
  })
  return {
    model, engine, call, takenBack: () => takenBack,
    goOn: () => {
      model.left = Infinity
      goOn()
    },
    becomes: (identity, how = {}) => {
      Object.assign(model, { identity, left: Infinity, status: 200, endless: null }, how)
      model.asked.length = 0
      engine.abilitiesChanged()
    }
  }
}

const notes = (count: number, kind = 'Note'): object => ({ items: Array.from({ length: count }, (_, i) => ({ content: `${kind} ${i}.` })) })

/** The last operation of a bank that embeds, when it is so. */
async function last (call: Wire['call'], bank: string, wanted: object): Promise<{ readonly id: string }> {
  for (;;) {
    const [operation] = (await call('GET', `${bank}/operations?type=embedding&limit=1`)).body.operations
    if (operation !== undefined && holds({ ...operation, ...operation.progress }, wanted)) return operation
  }
}

async function counts (call: Wire['call'], bank: string, wanted: object): Promise<void> {
  while (!holds((await call('GET', `${bank}/embeddings`)).body, wanted)) { /* it works */ }
}

function holds (given: Readonly<Record<string, unknown>>, wanted: object): boolean {
  return Object.entries(wanted).every(([key, value]) => given[key] === value)
}

t.test('many memories that wait for their vectors are one operation with its progress in the list, and a few are none', async t => {
  const { call, model, becomes, goOn } = openEmbedding(t)
  await call('POST', 'b/memories', notes(100))
  const { id } = await last(call, 'b', { status: 'completed' })
  t.match(await over(call, 'b', id), {
    operation_type: 'embedding', progress: { stage: 'embedding', processed: 100, total: 100 }, result_metadata: { embedded: 100, refused: 0, model: 'one' }
  })
  await call('POST', 'b/memories', { items: [{ content: 'One more.' }] })
  await counts(call, 'b', { done: 101, pending: 0 })
  t.equal((await call('GET', 'b/operations')).body.total, 1, 'not for one memory')

  becomes('two', { left: 1 })
  await last(call, 'b', { status: 'processing', stage: 'embedding', processed: 32, total: 101 })
  t.match((await call('GET', 'b/stats')).body, { pending_operations: 1, operations_by_status: { processing: 1, completed: 1 } })
  await call('POST', 'b/memories', { items: [{ content: 'Meanwhile.' }] })
  goOn()
  await last(call, 'b', { status: 'completed', processed: 102, total: 102 })
  t.equal(model.asked.length, 102)

  becomes('three', { status: 503 })
  await last(call, 'b', { status: 'processing', stage: 'waiting_for_model', processed: 0, total: 102 })
  becomes('four')
  const { id: third } = await last(call, 'b', { status: 'completed' })
  t.match((await call('GET', `b/operations/${third}`)).body, { result_metadata: { embedded: 102, model: 'four' } }, 'it goes on with the model that is there')

  becomes('four and a half', { left: 1 })
  await last(call, 'b', { status: 'processing', processed: 32 })
  // what hangs is left by itself
  becomes('four again')
  const { id: fourth } = await last(call, 'b', { status: 'completed', processed: 102 })
  t.match((await call('GET', `b/operations/${fourth}`)).body, { result_metadata: { embedded: 102, model: 'four again' } }, 'by that model alone')

  becomes('five', { left: 1 })
  await last(call, 'b', { status: 'processing', processed: 32 })
  becomes(null)
  goOn()
  await last(call, 'b', { status: 'processing', stage: 'waiting_for_model', processed: 32, total: 102 })
  becomes('five')
  await last(call, 'b', { status: 'completed', processed: 102 })
  t.equal((await call('GET', 'b/operations')).body.total, 5)
})

t.test('a text that its model refuses counts as done in the operation that asked for it', async t => {
  const { call, engine } = openEngine(t, {
    abilities: () => ({ ...noModels, embed: { model: 'one', why: null } }),
    run: async ({ body }) => {
      const { input } = JSON.parse(Buffer.from(body as Uint8Array).toString()) as { readonly input: readonly string[] }
      const data = input.map((text, index) => ({ index, embedding: [text.length, 1] }))
      return { status: input.some(text => text.startsWith('n')) ? 400 : 200, body: Buffer.from(JSON.stringify({ data })) }
    }
  })
  await call('POST', 'b/memories', { items: [{ content: 'never' }, ...(notes(40) as { readonly items: readonly object[] }).items] })
  const { id } = await last(call, 'b', { status: 'completed', processed: 41, total: 41 })
  t.match((await call('GET', `b/operations/${id}`)).body, { result_metadata: { embedded: 40, refused: 1 }, progress: { detail: { refused: 1 } } })
  t.match((await call('GET', 'b/embeddings')).body, { done: 40, failed: 1, cancelled: 0 })
  await engine.close()
})

t.test('a cancelled embedding stops at once and leaves its memories out, over a restart, until they are edited, it is tried again or another model comes', async t => {
  const path = `${t.testdir()}/memory.db`
  const first = openEmbedding(t, path)
  await first.call('POST', 'b/memories', notes(100))
  await last(first.call, 'b', { status: 'completed' })
  first.becomes('two', { left: 1 })
  const { id } = await last(first.call, 'b', { status: 'processing', processed: 32 })
  t.equal((await first.call('DELETE', `b/operations/${id}`)).status, 200)
  await first.takenBack()
  first.goOn()
  t.match((await first.call('GET', `b/operations/${id}`)).body, { status: 'cancelled' })
  const left = { done: 32, pending: 0, stale: 68, failed: 0, cancelled: 68 }
  t.match((await first.call('GET', 'b/embeddings')).body, left)
  await first.call('POST', 'b/memories', { items: [{ content: 'A new one.' }] })
  await counts(first.call, 'b', { ...left, done: 33 })
  await first.engine.close()

  const { call, model, becomes, engine } = openEmbedding(t, path, 'two')
  t.match((await call('GET', 'b/embeddings')).body, { ...left, done: 33 })
  const [{ id: edited }] = (await call('GET', 'b/memories/list?q=99')).body.items
  await call('PATCH', `b/memories/${edited}`, { text: 'Edited.' })
  await counts(call, 'b', { done: 34, pending: 0, cancelled: 67 })
  t.same(model.asked, ['Edited.'])
  t.match(await call('POST', 'b/memories/recall', { query: 'note' }), { status: 200, headers: { 'x-svc-recall': 'text+vectors' } })
  await call('POST', 'b/memories', notes(40, 'Later'))
  await last(call, 'b', { status: 'completed', processed: 40 })
  t.match((await call('GET', 'b/embeddings')).body, { done: 74, cancelled: 67 }, 'an operation for new ones takes no others')

  t.equal((await call('POST', `b/operations/${id}/retry`)).status, 200)
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { embedded: 67, model: 'two' } })
  t.match((await call('GET', 'b/embeddings')).body, { done: 141, pending: 0, stale: 0, cancelled: 0 })
  t.equal((await call('POST', `b/operations/${id}/retry`)).status, 409)

  becomes('three', { left: 0 })
  const { id: third } = await last(call, 'b', { status: 'processing' })
  await call('DELETE', `b/operations/${third}`)
  t.match((await call('GET', 'b/embeddings')).body, { done: 0, cancelled: 141 })
  becomes('four')
  await counts(call, 'b', { model: 'four', done: 141, pending: 0, cancelled: 0 })
  await engine.close()
})

t.test('an embedding that is cancelled while it waits for others leaves its memories out too', async t => {
  const { call, becomes } = openEmbedding(t)
  becomes('one', { left: 0 })
  const banks = ['a', 'b', 'c', 'd', 'e']
  for (const bank of banks) await call('POST', `${bank}/memories`, notes(33))
  const { id } = await last(call, 'e', { status: 'pending' })
  for (const bank of banks.slice(0, 4)) await last(call, bank, { status: 'processing' })
  t.equal((await call('DELETE', `e/operations/${id}`)).status, 200)
  t.match((await call('GET', 'e/embeddings')).body, { done: 0, pending: 0, cancelled: 33 })
  await call('DELETE', 'e')
  t.match(await call('GET', 'e/operations'), { status: 404 })
})

t.test('a bank whose embedding waits for those of others gets its vectors all the same', async t => {
  const { call, becomes } = openEmbedding(t)
  becomes('one', { endless: 'Endless' })
  for (const bank of ['a', 'b', 'c', 'd']) {
    await call('POST', `${bank}/memories`, notes(33, 'Endless'))
    await last(call, bank, { status: 'processing' })
  }
  await call('POST', 'e/memories', notes(40))
  await counts(call, 'e', { done: 40, pending: 0 })
  await last(call, 'e', { status: 'pending' })
  await call('POST', 'e/memories', notes(3, 'Later'))
  await counts(call, 'e', { done: 43, pending: 0 })
  becomes('two')
  await last(call, 'e', { status: 'completed' })
})

t.test('many memories get their operation while others wait for the model', async t => {
  const { call, becomes } = openEmbedding(t)
  becomes('one', { endless: 'Endless' })
  await call('POST', 'a/memories', notes(1, 'Endless'))
  await call('POST', 'b/memories', notes(33))
  await last(call, 'b', { status: 'completed', processed: 33 })
  becomes('two', { status: 503 })
  await counts(call, 'a', { done: 0, pending: 1 })
  await call('POST', 'c/memories', notes(33))
  await last(call, 'c', { status: 'processing', stage: 'waiting_for_model' })
})

t.test('an embedding goes on after a restart without its model, and from where it was', async t => {
  const path = `${t.testdir()}/memory.db`
  const first = openEmbedding(t, path)
  first.becomes('one', { left: 1 })
  await first.call('POST', 'b/memories', notes(100))
  await last(first.call, 'b', { status: 'processing', processed: 32, total: 100 })
  await first.engine.close()

  const second = openEmbedding(t, path, null)
  await last(second.call, 'b', { status: 'processing', stage: 'waiting_for_model', processed: 32, total: 100 })
  second.becomes('one')
  await last(second.call, 'b', { status: 'completed', processed: 100 })
  t.equal(second.model.asked.length, 68)
})
