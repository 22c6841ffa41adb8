import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Abilities } from '../../../../plugins/services/memory-engine/messages.js'
import type { EmbeddedOptions } from '../../../../plugins/services/memory-engine/embedded-engine.js'
import { over } from './models-support.js'
import { noModels, openEngine, type Wire } from './support.js'

const MANY = 100

/** A model that gives each text the same vector, for as long as it is not held. */
class Model {
  abilities: Abilities = { ...noModels, embed: { model: 'm', identity: 'm 1', why: null } }
  /** Texts that were answered. */
  readonly embedded: string[] = []
  /** Questions that are not answered. */
  held = 0
  left = 0
  /** How many are answered before the next one is held. */
  answers = Infinity

  readonly run: EmbeddedOptions['run'] = ({ body }, signal) => {
    const { input } = JSON.parse(Buffer.from(body).toString()) as { readonly input: readonly string[] }
    if (this.answers-- > 0) {
      this.embedded.push(...input)
      const data = input.map((_, index) => ({ index, embedding: [1, 1] }))
      return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify({ data })) })
    }
    this.held++
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        this.left++
        reject(signal.reason as Error)
      })
    })
  }
}

function opened (t: Test, path: string, model = new Model()): Wire & { readonly model: Model } {
  return { ...openEngine(t, { path: () => path, abilities: () => model.abilities, run: model.run }), model }
}

const items = (count: number, of = 'Ship'): object => ({ items: Array.from({ length: count }, (_, i) => ({ content: `${of} ${i} lies in the harbour.` })) })

interface Row { readonly id: string, readonly status: string, readonly progress: object | null }

async function listed (call: Wire['call']): Promise<readonly Row[]> {
  return (await call<{ operations: readonly Row[] }>('GET', 'b/operations?type=embedding')).body.operations
}

async function until (isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!await isSo()) await new Promise(resolve => { setImmediate(resolve) })
}

/** Until none waits. */
async function settled (call: Wire['call']): Promise<object> {
  for (;;) {
    const { body } = await call('GET', 'b/embeddings')
    if (body.pending === 0) return body
  }
}

t.test('many vectors of a bank are one operation of its list, with progress, and a few are none', async t => {
  const { call, engine, model } = opened(t, join(t.testdir(), 'memory.db'))
  await call('POST', 'b/memories', items(5))
  await settled(call)
  t.same(await listed(call), [])
  model.answers = 1
  await call('POST', 'b/memories', items(MANY))
  await until(() => model.held > 0)
  const [one, ...others] = await listed(call)
  t.match(one, { status: 'processing', progress: { stage: 'embedding', processed: 32, total: MANY - 5 } })
  t.same(others, [])
  t.match((await call('GET', 'b/stats')).body, { pending_operations: 1 })
  const { body: { operation_id: id } } = await call('POST', 'b/memories', { ...items(1, 'Tea'), async: true })
  t.match(await over(call, 'b', id), { status: 'completed' }, 'what is written does not wait for it')

  await call('DELETE', `b/operations/${one!.id}`)
  model.answers = Infinity
  model.abilities = { ...model.abilities, embed: { model: 'm', identity: 'm 2', why: null } }
  engine.abilitiesChanged()
  t.match(await settled(call), { model: 'm 2', done: MANY + 1, stale: 0, cancelled: 0 }, 'what was cancelled with one model is made with the next')
  const renewed = (await listed(call)).find(({ status }) => status === 'completed')
  t.match((await call('GET', `b/operations/${renewed!.id}`)).body, { result_metadata: { model: 'm 2' }, progress: { stage: 'embedding' } })
})

t.test('vectors that are cancelled are made no more, over restarts too, until they are asked for again; new memories get theirs', async t => {
  const path = join(t.testdir(), 'memory.db')
  const first = opened(t, path)
  first.model.answers = 1
  await first.call('POST', 'b/memories', items(MANY))
  await until(() => first.model.held > 0)
  const [{ id } = { id: '' }] = await listed(first.call)
  t.match((await first.call('DELETE', `b/operations/${id}`)).body, { success: true })
  await until(() => first.model.left === 1)
  await first.engine.close()

  const { call, model, engine } = opened(t, path)
  t.match(await settled(call), { done: 32, pending: 0, failed: 0, cancelled: MANY - 32 })
  await call('POST', 'b/memories', items(3, 'Boat'))
  t.match(await settled(call), { done: 35, cancelled: MANY - 32 })
  t.same(model.embedded.filter(text => text.startsWith('Ship')), [])
  const [, ...moved] = (await call('GET', 'b/memories/list?q=Ship&limit=100')).body.items
  t.equal(moved.length, MANY - 1)
  t.match((await call('POST', 'b/memories/recall', { query: 'Which ship is number 99?' })).body, { results: [{ text: 'Ship 99 lies in the harbour.' }] })
  t.match(await listed(call), [{ id, status: 'cancelled' }])
  await engine.close()

  const again = opened(t, path)
  t.match(await settled(again.call), { done: 35, cancelled: MANY - 32 }, 'as after the restart before')
  t.match((await again.call('POST', `b/operations/${id}/retry`)).body, { success: true })
  t.match(await over(again.call, 'b', id), { status: 'completed', result_metadata: { embedded: MANY - 32 } })
  t.match(await settled(again.call), { done: MANY + 3, cancelled: 0 })
})

t.test('what an engine leaves unfinished goes on with the next one, as the same operation', async t => {
  const path = join(t.testdir(), 'memory.db')
  const first = opened(t, path)
  first.model.answers = 2
  await first.call('POST', 'b/memories', items(MANY))
  await until(() => first.model.held > 0)
  const [{ id } = { id: '' }] = await listed(first.call)
  await first.engine.close()
  const { call, model } = opened(t, path)
  t.match(await over(call, 'b', id), { status: 'completed', result_metadata: { embedded: MANY - 64 } })
  t.equal(model.embedded.length, MANY - 64, 'nothing is made twice')
  t.match(await listed(call), [{ id }])
})
