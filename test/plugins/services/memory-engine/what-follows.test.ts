import { join } from 'node:path'
import t from 'tap'
import { startBackground } from '../../../../plugins/services/memory-engine/background.js'
import type { Core } from '../../../../plugins/services/memory-engine/core.js'
import { operationsOf } from '../../../../plugins/services/memory-engine/operations/operations.js'
import { answerRequest } from '../../../../plugins/services/memory-engine/router.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { bytesOf, noModels } from './support.js'
import { consolidating } from './models-support.js'

/** What a kill at this moment would leave of operations that are over: each with what is to follow it. */
function left (store: Store): readonly unknown[] {
  return store.all(`SELECT type, (SELECT count(*) FROM operations f WHERE f.type = 'consolidation') AS consolidations,
      (SELECT count(*) FROM operations f WHERE f.type = 'refresh_mental_model') AS refreshes,
      (SELECT count(*) FROM webhook_deliveries d WHERE d.event_type = 'consolidation.completed') AS announced
    FROM operations WHERE status = 'completed' AND type IN ('graph_maintenance', 'consolidation')`)
}

t.test('what follows an operation is written with its end, so that a kill in between leaves nothing undone', async t => {
  const ends = new AbortController()
  const store = openStore(join(t.testdir(), 'memory.db'))
  const seen = new Map<string, unknown>()
  let depth = 0
  const own = store.transaction.bind(store) as (work: () => unknown) => unknown
  const look = (): void => {
    for (const row of left(store) as ReadonlyArray<{ readonly type: string }>) if (!seen.has(row.type)) seen.set(row.type, row)
  }
  Object.assign(store, {
    transaction: (work: () => unknown) => {
      depth++
      try {
        return own(work)
      } finally {
        if (--depth === 0) look()
      }
    }
  })
  const core: Core = {
    store, now: () => Date.now(), log: () => {}, closing: ends.signal,
    outside: {
      abilities: { ...noModels, chat: { model: 'm', why: null }, extracts: true }, onAbilities: () => () => {},
      run: async errand => errand.to === 'web' ? { status: 204, body: Buffer.from('') } : await consolidating(errand)
    },
    hooks: { retaining: [], retained: [], answered: [], retainLater: null }
  }
  t.teardown(() => {
    ends.abort(new Error('the test is over'))
    store.close()
  })
  startBackground(core)
  const refreshed = (): Promise<void> => new Promise(resolve => {
    operationsOf(core).ended.push(({ type }) => { if (type === 'refresh_mental_model') resolve() })
  })
  const call = async (method: string, path: string, sent: object): Promise<void> => {
    const answer = await answerRequest(core, {
      method, path: `/v1/default/banks/b${path}`, query: '', headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(sent)),
      signal: new AbortController().signal
    })
    await bytesOf(answer)
    t.ok(answer.status < 300, `${method} ${path} came to ${answer.status}`)
  }
  await call('PUT', '', {})
  await call('POST', '/webhooks', { url: 'https://example.com/x', event_types: ['consolidation.completed'] })
  const made = refreshed()
  await call('POST', '/mental-models', { name: 'All', source_query: 'What is there?', trigger: { refresh_after_consolidation: true } })
  await made
  const anew = refreshed()
  await call('POST', '/memories', { items: [{ content: 'So I say.', document_id: 'd' }] })
  await anew
  t.match(seen.get('graph_maintenance'), { consolidations: 1 }, 'the consolidation of the facts that were found')
  t.match(seen.get('consolidation'), { refreshes: 2, announced: 1 }, 'the refresh of a mental model, and the webhook')
})
