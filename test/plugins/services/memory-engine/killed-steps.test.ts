import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import Driver from 'libsql'
import { openSqlFileWith } from 'svc-gateway/plugin'
import t, { type Test } from 'tap'
import { migrations } from '../../../../plugins/services/memory-engine/store/migrations/index.js'
import { migrate } from '../../../../plugins/services/memory-engine/store/migrations/migrate.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { form, over } from './models-support.js'
import { openInThread, whenever, type Wire } from './support.js'

/*
 * A process that is killed leaves its files as they are: here they are copied before and after each thing that the database is
 * asked for, which is every step at which one could be killed. What is the same as the step before is looked at once.
 */

const parts = ['', '-wal', '-shm'] as const

/** A moment at which the process could have been killed. */
interface Moment<T> {
  readonly folder: string
  /** What was known then. */
  readonly known: T
}

/** Runs `work` and keeps what is in the files of the database at each step. `known` says what a client knows. */
async function moments<T> (
  folder: string, kept: string, known: () => T, work: () => Promise<void> | void
): Promise<ReadonlyArray<Moment<T>>> {
  const all: Array<Moment<T>> = []
  const path = join(folder, 'memory', 'memory.db')
  let last = ''
  const look = (): void => {
    // the third file holds nothing that the others have not
    const now = parts.slice(0, 2).map(part => existsSync(`${path}${part}`) ? readFileSync(`${path}${part}`).toString('latin1') : '').join('|') + JSON.stringify(known())
    if (now === last) return
    last = now
    const copy = join(kept, String(all.length), 'memory', 'memory.db')
    mkdirSync(dirname(copy), { recursive: true })
    for (const part of parts) if (existsSync(`${path}${part}`)) copyFileSync(`${path}${part}`, `${copy}${part}`)
    all.push({ folder: join(kept, String(all.length)), known: structuredClone(known()) })
  }
  const names = ['all', 'get', 'run', 'exec', 'transaction'] as const
  const own = Object.fromEntries(names.map(name => [name, Store.prototype[name] as (...args: unknown[]) => unknown]))
  for (const name of names) {
    Object.assign(Store.prototype, {
      [name] (this: Store, ...args: unknown[]) {
        look()
        const result = own[name]!.apply(this, args)
        look()
        return result
      }
    })
  }
  try {
    await work()
  } finally {
    Object.assign(Store.prototype, own)
  }
  return all
}

/** Folders that no disk is to wait for. */
async function folders (t: Test): Promise<{ readonly folder: string, readonly kept: string }> {
  const base = await mkdtemp(join(tmpdir(), 'svc-killed-'))
  t.teardown(() => rm(base, { recursive: true }))
  return { folder: join(base, 'now'), kept: join(base, 'kept') }
}

function isSound (t: Test, store: Store): void {
  t.match(store.get('PRAGMA integrity_check'), { integrity_check: 'ok' })
  t.same(store.all('PRAGMA foreign_key_check'), [])
  t.same(store.all('SELECT version FROM schema_migrations ORDER BY version'), migrations.map(({ version }) => ({ version })).toSorted((a, b) => a.version - b.version))
}

function isIndexed (t: Test, store: Store): void {
  for (const { seq } of store.all<{ seq: number }>('SELECT seq FROM banks')) {
    const { count } = store.get<{ count: number }>(`SELECT count(*) AS count FROM memories WHERE bank = ? AND state = 'valid'`, [seq])!
    t.equal(store.get<{ count: number }>(`SELECT count(*) AS count FROM text_${seq}_docsize`)!.count, count, 'every text has its index row')
  }
}

t.test('a database whose making is killed at any step is made by the next start', async t => {
  const { folder, kept } = await folders(t)
  const path = join(folder, 'memory', 'memory.db')
  const all = await moments(folder, kept, () => null, () => openStore(path).close())
  t.ok(all.length > migrations.length, `${all.length} moments`)
  for (const moment of all) {
    const store = openStore(join(moment.folder, 'memory', 'memory.db'))
    isSound(t, store)
    store.close()
  }
})

t.test('a database of a release before that is killed at any step of its migration is brought to its form with all that it holds', async t => {
  const { folder, kept } = await folders(t)
  const path = join(folder, 'memory', 'memory.db')
  const before = openSqlFileWith(Driver, {
    path, File: Store, durability: 'normal', form: store => migrate(store, migrations.filter(({ version }) => version < 40))
  })
  before.exec(`INSERT INTO banks (bank_id, name, created_at, updated_at) VALUES ('b', 'Bee', 0, 0);
    INSERT INTO documents (bank, document_id, text_length, created_at, updated_at) VALUES (1, 'd', 1, 0, 0);
    INSERT INTO memories (id, bank, document, text, text_hash, fact_type, tags, state, created_at, updated_at) VALUES
      ('m1', 1, 1, 'Alice', x'01', 'world', '[]', 'valid', 0, 0), ('m2', 1, 1, 'Bob', x'02', 'world', '[]', 'invalidated', 0, 0),
      ('o1', 1, NULL, 'One', x'03', 'observation', '["b","a"]', 'valid', 0, 0), ('o2', 1, NULL, 'Two', x'04', 'observation', '["a","b","a"]', 'valid', 0, 0),
      ('o3', 1, NULL, 'Three', x'05', 'observation', '[]', 'invalidated', 0, 0)`)
  before.close()
  const all = await moments(folder, kept, () => null, () => openStore(path).close())
  t.ok(all.length > 2, `${all.length} moments`)
  for (const moment of all) {
    const store = openStore(join(moment.folder, 'memory', 'memory.db'))
    isSound(t, store)
    t.equal(store.all('SELECT id FROM memories').length, 5)
    t.same(store.all('SELECT scope, count FROM observation_scopes'), [{ scope: '["a","b"]', count: 2 }], 'counted once')
    store.run(`UPDATE memories SET state = 'valid' WHERE id = 'o3'`)
    store.run(`UPDATE memories SET tags = '["a"]' WHERE id = 'o1'`)
    store.run(`DELETE FROM memories WHERE id = 'o2'`)
    t.same(store.all('SELECT scope, count FROM observation_scopes ORDER BY scope'), [{ scope: '["a"]', count: 1 }, { scope: '[]', count: 1 }])
    store.run('DELETE FROM banks')
    t.same(store.all('SELECT 1 FROM observation_scopes'), [])
    store.close()
  }
})

const items = (...texts: readonly string[]): object => ({ items: texts.map(content => ({ content, document_id: content.split(' ')[0], tags: ['t'] })) })

async function exportOf ({ engine, call }: ReturnType<typeof openInThread>, bank: string): Promise<Buffer> {
  const { body: { operation_id: id } } = await call('POST', `${bank}/transfer/export`)
  const { result_metadata: { download_url: path } } = await over(call, bank, id)
  const { body } = await engine.request({ method: 'GET', path, query: '', headers: {}, body: null, signal: new AbortController().signal })
  return await buffer(body as AsyncIterable<Buffer>)
}

async function textsOf (call: Wire['call'], bank: string, limit = 100): Promise<readonly string[]> {
  const { status, body } = await call('GET', `${bank}/memories/list?limit=${limit}`)
  return status === 404 ? [] : body.items.map((row: { text: string }) => row.text).toSorted()
}

async function settled (call: Wire['call']): Promise<void> {
  for (const bank of ['b', 'c', 'n']) {
    const { status, body } = await call('GET', `${bank}/operations`)
    if (status === 404) continue
    for (const { id } of body.operations) await over(call, bank, id)
  }
}

t.test('an engine that is killed at any step of an import, into a bank that is there or a new one, brings all of it or nothing', { timeout: 240_000 }, async t => {
  const { folder, kept } = await folders(t)
  const wire = openInThread(t, join(folder, 'source'))
  await wire.call('POST', 'b/memories', items('one', 'two', 'three'))
  const archive = await exportOf(wire, 'b')
  const known = { merge: 'not asked', restore: 'not asked' }
  let all: ReadonlyArray<Moment<typeof known>> = []
  await t.test('the import is made', async t => {
    all = await moments(folder, kept, () => known, async () => {
      const { call } = openInThread(t, folder)
      await call('POST', 'c/memories', items('one before', 'four'))
      await call('PUT', 'n', {})
      for (const [name, path] of [['merge', 'c/transfer/import?mode=merge&document_conflict=replace'], ['restore', 'n/transfer/import?target_bank_id=r']] as const) {
        known[name] = 'asked'
        const { status, body } = await call('POST', path, ...form('file', 'a.zip', archive))
        t.equal(status, 202)
        known[name] = 'acknowledged'
        t.match(await over(call, path[0]!, body.operation_id), { status: 'completed' })
        known[name] = 'over'
      }
      t.same(await textsOf(call, 'c'), ['four', 'one', 'three', 'two'])
    })
  })
  t.ok(all.length > 30, `${all.length} moments`)
  for (const [n, { folder: left, known: then }] of all.entries()) {
    await t.test(`moment ${n}: ${JSON.stringify(then)}`, async t => {
      const { call } = openInThread(t, left)
      await settled(call)
      const [merged, restored] = [(await textsOf(call, 'c')).join(), (await textsOf(call, 'r')).join()]
      const [whole, mergedWhole] = ['one,three,two', 'four,one,three,two']
      if (then.merge === 'acknowledged' || then.merge === 'over') t.equal(merged, mergedWhole, 'what was acknowledged is there')
      else t.ok(['', 'four,one before', ...then.merge === 'asked' ? [mergedWhole] : []].includes(merged), `nothing half: ${merged}`)
      if (then.restore === 'acknowledged' || then.restore === 'over') t.equal(restored, whole)
      else t.ok(['', ...then.restore === 'asked' ? [whole] : []].includes(restored), `nothing half: ${restored}`)
      const store = openStore(join(left, 'memory', 'memory.db'))
      isSound(t, store)
      t.same(store.all(`SELECT bank_id FROM banks WHERE bank_id LIKE '/%'`), [], 'what was half made is gone')
      isIndexed(t, store)
      store.close()
    })
  }
})

t.test('an engine that is killed at any step of a retain, a deletion or an operation keeps what it acknowledged, and nothing that was deleted', { timeout: 240_000 }, async t => {
  const { folder, kept } = await folders(t)
  const known = { retain: 'not asked', forget: 'not asked', later: 'not asked', document: 'not asked' }
  type Known = typeof known
  let all: ReadonlyArray<Moment<Known>> = []
  await t.test('the calls are made', async t => {
    all = await moments(folder, kept, () => known, async () => {
      const { call } = openInThread(t, folder)
      const asked = async (name: keyof Known, status: number, ...asks: Parameters<typeof call>): Promise<string | null> => {
        known[name] = 'asked'
        const answer = await call(...asks)
        t.equal(answer.status, status, name)
        known[name] = 'acknowledged'
        return answer.body.operation_id ?? null
      }
      await asked('retain', 200, 'POST', 'b/memories', items('one', 'two'))
      const { body: { items: rows } } = await call('GET', 'b/memories/list')
      const { id } = rows.find(({ text }: { text: string }) => text === 'one')
      await asked('forget', 200, 'DELETE', `b/memories/${id}`)
      const operation = await asked('later', 200, 'POST', 'b/memories', { ...items('three', 'four'), async: true })
      t.match(await over(call, 'b', operation!), { status: 'completed' })
      await asked('document', 200, 'DELETE', 'b/documents/three')
      t.same(await textsOf(call, 'b'), ['four', 'two'])
    })
  })
  t.ok(all.length > 20, `${all.length} moments`)
  for (const [n, { folder: left, known: then }] of all.entries()) {
    await t.test(`moment ${n}: ${JSON.stringify(then)}`, async t => {
      const { call } = openInThread(t, left)
      await settled(call)
      const texts = await textsOf(call, 'b')
      const has = (text: string, kept: keyof Known, gone: keyof Known | null): void => {
        const isGone = gone !== null && then[gone] !== 'not asked'
        const is = texts.includes(text)
        if (gone !== null && then[gone] === 'acknowledged') t.notOk(is, `${text} was deleted`)
        else if (then[kept] === 'not asked') t.notOk(is, `${text} was never asked for`)
        else if (then[kept] === 'acknowledged' && !isGone) t.ok(is, `${text} was acknowledged`)
      }
      has('one', 'retain', 'forget')
      has('two', 'retain', null)
      has('three', 'later', 'document')
      has('four', 'later', null)
      if (then.later === 'asked') t.equal(texts.includes('three'), texts.includes('four'), 'both or neither')
      const store = openStore(join(left, 'memory', 'memory.db'))
      isSound(t, store)
      isIndexed(t, store)
      store.close()
    })
  }
})

function isSwept (store: Store): boolean {
  return store.all(`SELECT 1 FROM clearings UNION ALL SELECT 1 FROM banks WHERE bank_id GLOB '/deleted/*'`).length === 0
}

t.test('of an engine that is killed at any step of a deletion that goes slice by slice, the next start leaves what is deleted, and nothing else, behind', { timeout: 240_000 }, async t => {
  const { folder, kept } = await folders(t)
  const known = { document: 'not asked', clear: 'not asked', bank: 'not asked' }
  type Known = typeof known
  // each is more than goes at once
  const many = (count: number, name: string, document?: string): object => ({
    items: Array.from({ length: count }, (_, i) => ({ content: `${name} ${i} sails.`, tags: ['t'], entities: [{ text: name }], ...document === undefined ? {} : { document_id: document } }))
  })
  let all: ReadonlyArray<Moment<Known>> = []
  await t.test('the calls are made', async t => {
    const { call } = openInThread(t, folder)
    await call('POST', 'b/memories', many(130, 'Ship', 'log'))
    await call('POST', 'b/memories', items('one', 'two'))
    await call('POST', 'c/memories', many(210, 'Boat'))
    await call('POST', 'n/memories', many(210, 'Raft'))
    await call('POST', 'other/memories', items('three'))
    all = await moments(folder, kept, () => known, async () => {
      for (const [name, path] of [['document', 'b/documents/log'], ['clear', 'c/memories'], ['bank', 'n']] as const) {
        known[name] = 'asked'
        t.equal((await call('DELETE', path)).status, 200)
        known[name] = 'acknowledged'
      }
      const seen = openStore(join(folder, 'memory', 'memory.db'))
      await whenever(() => isSwept(seen))
      seen.close()
    })
  })
  t.ok(all.length > 8, `${all.length} moments`)
  for (const [n, { folder: left, known: then }] of all.entries()) {
    await t.test(`moment ${n}: ${JSON.stringify(then)}`, async t => {
      const { call } = openInThread(t, left)
      const store = openStore(join(left, 'memory', 'memory.db'))
      await whenever(() => isSwept(store))
      const has = async (name: keyof Known, bank: string, word: string, count: number): Promise<void> => {
        const found = (await textsOf(call, bank, 500)).filter(text => text.startsWith(word)).length
        if (then[name] === 'not asked') t.equal(found, count, `${word}s are all there`)
        else if (then[name] === 'acknowledged') t.equal(found, 0, `${word}s were deleted`)
        else t.ok(found === 0 || found === count, `all ${word}s or none: ${found}`)
      }
      await has('document', 'b', 'Ship', 130)
      await has('clear', 'c', 'Boat', 210)
      await has('bank', 'n', 'Raft', 210)
      t.same([await textsOf(call, 'b').then(texts => texts.filter(text => !text.startsWith('Ship'))), await textsOf(call, 'other')], [['one', 'two'], ['three']])
      isSound(t, store)
      isIndexed(t, store)
      store.close()
    })
  }
})

t.test('the files of the database are the owner’s alone, those beside it included, whatever the umask is', async t => {
  const { folder } = await folders(t)
  const before = process.umask(0)
  t.teardown(() => process.umask(before))
  const { call } = openInThread(t, folder)
  await call('POST', 'b/memories', items('one'))
  for (const part of parts) t.equal(statSync(join(folder, 'memory', `memory.db${part}`)).mode & 0o777, 0o600, `memory.db${part}`)
  t.equal(statSync(join(folder, 'memory')).mode & 0o777, 0o700)
})
