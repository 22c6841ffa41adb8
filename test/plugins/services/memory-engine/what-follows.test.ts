import { join } from 'node:path'
import t, { type Test } from 'tap'
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
      (SELECT count(*) FROM webhook_deliveries d WHERE d.event_type = 'consolidation.completed') AS announced,
      (SELECT count(*) FROM audit_log a WHERE a.transport = 'system' AND a.facts LIKE '%"' || o.id || '"%') AS recorded
    FROM operations o WHERE status IN ('completed', 'cancelled') AND type IN ('graph_maintenance', 'consolidation')`)
}

interface Followed {
  readonly core: Core
  /** The first look at what a kill would have left, by types of operations. */
  readonly seen: ReadonlyMap<string, unknown>
  readonly call: (method: string, path: string, sent?: object) => Promise<Record<string, string>>
}

/** An engine whose database is looked at after each transaction. */
function followed (t: Test, run: Core['outside']['run'], extracts = true): Followed & { readonly close: () => void } {
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
    outside: { abilities: { ...noModels, chat: { model: 'm', why: null }, extracts }, onAbilities: () => () => {}, run },
    hooks: { retaining: [], retained: [], answered: [], retainLater: null }
  }
  const close = (): void => {
    ends.abort(new Error('the test is over'))
    store.close()
  }
  t.teardown(close)
  startBackground(core)
  const call: Followed['call'] = async (method, path, sent) => {
    const answer = await answerRequest(core, {
      method, path: `/v1/default/banks/b${path}`, query: '', headers: { 'content-type': 'application/json' },
      body: Buffer.from(sent === undefined ? '' : JSON.stringify(sent)), signal: new AbortController().signal
    })
    const bytes = await bytesOf(answer)
    t.ok(answer.status < 300, `${method} ${path} came to ${answer.status}`)
    return JSON.parse(bytes.toString()) as Record<string, string>
  }
  return { core, seen, call, close }
}

t.test('what follows an operation is written with its end, so that a kill in between leaves nothing undone', async t => {
  const { core, seen, call } = followed(t, async errand => errand.to === 'web' ? { status: 204, body: Buffer.from('') } : await consolidating(errand))
  const refreshed = (): Promise<void> => new Promise(resolve => {
    operationsOf(core).ended.push(({ type }) => { if (type === 'refresh_mental_model') resolve() })
  })
  await call('PUT', '', {})
  await call('POST', '/webhooks', { url: 'https://example.com/x', event_types: ['consolidation.completed'] })
  const made = refreshed()
  await call('POST', '/mental-models', { name: 'All', source_query: 'What is there?', trigger: { refresh_after_consolidation: true } })
  await made
  const anew = refreshed()
  await call('POST', '/memories', { items: [{ content: 'So I say.', document_id: 'd' }] })
  await anew
  t.match(seen.get('graph_maintenance'), { consolidations: 1, recorded: 1 }, 'the consolidation of the facts that were found')
  t.match(seen.get('consolidation'), { refreshes: 2, announced: 1, recorded: 1 }, 'the refresh of a mental model, and the webhook')
})

t.test('a consolidation that is cancelled while it runs is announced and recorded with that', async t => {
  let asked = (): void => {}
  const begun = new Promise<void>(resolve => { asked = resolve })
  const { seen, call } = followed(t, async (errand, signal) => {
    if (errand.to === 'web') return { status: 204, body: Buffer.from('') }
    asked()
    return await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  }, false)
  await call('PUT', '', {})
  await call('POST', '/webhooks', { url: 'https://example.com/x', event_types: ['consolidation.completed'] })
  await call('POST', '/memories', { items: [{ content: 'Alice lives in Rome.' }] })
  const { operation_id: id } = await call('POST', '/consolidate')
  await begun
  await call('DELETE', `/operations/${id}`)
  t.match(seen.get('consolidation'), { announced: 1, recorded: 1 })
})

t.test('that something was deleted is recorded before the answer, and what else was asked when the engine closes', async t => {
  const { core: { store }, call, close } = followed(t, () => Promise.reject(new Error('no models here')))
  const actions = (from: Store): readonly string[] => from.all<{ action: string }>('SELECT action FROM audit_log ORDER BY seq').map(({ action }) => action)
  await call('POST', '/memories', { items: [{ content: 'Alice lives in Rome.', document_id: 'd' }] })
  await call('DELETE', '/documents/d')
  t.same(actions(store).filter(action => action === 'delete_document'), ['delete_document'])
  await call('DELETE', '/memories')
  t.equal(actions(store).at(-1), 'clear_memories')
  await call('PATCH', '', { name: 'Bee' })
  close()
  const again = openStore(join(t.testdirName, 'memory.db'))
  t.equal(actions(again).at(-1), 'update_bank')
  again.close()
})
