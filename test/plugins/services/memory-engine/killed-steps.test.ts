import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { someOf } from '../../../whole.js'
import { migrations } from '../../../../plugins/services/memory-engine/store/migrations/index.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { deletions, fillForDeletions, isDeleted, isSwept, type Asked } from './killed/deletions.js'
import { isBroughtToForm, makeFormer } from './killed/form.js'
import { exportOf, items, settled, textsOf } from './killed/imports.js'
import { isIndexed, isSound, keepsWhatItNames } from './killed/sound.js'
import { form, over } from './models-support.js'
import { databaseIn, openInThread, whenever } from './support.js'

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
  let last: readonly Buffer[] = []
  const look = (): void => {
    // the third file holds nothing that the others have not
    const files = parts.slice(0, 2).map(part => existsSync(`${path}${part}`) ? readFileSync(`${path}${part}`) : Buffer.alloc(0))
    const now = [...files, Buffer.from(JSON.stringify(known()))]
    if (now.every((bytes, i) => last[i]?.equals(bytes))) return
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
  makeFormer(databaseIn(folder))
  const all = await moments(folder, kept, () => null, () => openStore(databaseIn(folder)).close())
  t.ok(all.length > 2, `${all.length} moments`)
  for (const moment of all) isBroughtToForm(t, moment.folder)
})

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
  for (const [n, { folder: left, known: then }] of someOf([...all.entries()], 4)) {
    await t.test(`moment ${n}: ${JSON.stringify(then)}`, async t => {
      const { call } = openInThread(t, left)
      await settled(call, ['b', 'c', 'n'])
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
      keepsWhatItNames(t, store)
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
  for (const [n, { folder: left, known: then }] of someOf([...all.entries()], 4)) {
    await t.test(`moment ${n}: ${JSON.stringify(then)}`, async t => {
      const { call } = openInThread(t, left)
      await settled(call, ['b', 'c', 'n'])
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
      keepsWhatItNames(t, store)
      store.close()
    })
  }
})

t.test('of an engine that is killed at any step of a deletion that goes slice by slice, the next start leaves what is deleted, and nothing else, behind', { timeout: 240_000 }, async t => {
  const { folder, kept } = await folders(t)
  const known: Record<keyof typeof deletions, Asked> = { document: 'not asked', clear: 'not asked', bank: 'not asked' }
  let all: ReadonlyArray<Moment<typeof known>> = []
  await t.test('the calls are made', async t => {
    const { call } = openInThread(t, folder)
    await fillForDeletions(call)
    all = await moments(folder, kept, () => known, async () => {
      for (const [name, path] of Object.entries(deletions) as Array<[keyof typeof deletions, string]>) {
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
  for (const [n, { folder: left, known: then }] of someOf([...all.entries()], 4)) {
    await t.test(`moment ${n}: ${JSON.stringify(then)}`, t => isDeleted(t, left, then))
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
