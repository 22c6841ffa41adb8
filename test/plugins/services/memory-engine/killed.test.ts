import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { oneFile } from '../../../one-file.js'
import { script } from './killed-script.js'

const child = await oneFile(join(import.meta.dirname, 'killed-child.js'))

interface Killed { readonly stdout: string, readonly signal?: string }

const runChild = (...args: readonly string[]): Promise<Killed> =>
  promisify(execFile)(process.execPath, [child, ...args], { env: { ...process.env, NODE_OPTIONS: '' } }).catch((error: unknown) => error as Killed)

/** Places between steps that are tried; each is a process. */
const KILLS = 12

t.test('killed between any two steps of a write, nothing that was answered is lost and no text is without its index row', async t => {
  const folder = t.testdir()
  const whole = await runChild(join(folder, 'whole.db'))
  const steps = Number(/steps (\d+)/.exec(whole.stdout)?.[1])
  t.ok(steps > 100, `${steps} steps`)
  const kills = Array.from({ length: KILLS }, (_, i) => 2 + Math.floor((i * (steps - 2)) / KILLS) + (i % 3))
  const killed = await Promise.all(kills.map(async at => {
    const path = join(folder, `${at}.db`)
    return { at, path, ...await runChild(path, String(at)) }
  }))
  for (const { at, path, stdout, signal } of killed) {
    t.equal(signal, 'SIGKILL')
    const answered = Number(stdout.trim().split('\n').at(-1))
    const store = openStore(path)
    t.match(store.get('PRAGMA integrity_check'), { integrity_check: 'ok' })
    t.same(store.all('PRAGMA foreign_key_check'), [])
    const found = store.all<{ line: string }>(
      `SELECT b.bank_id || ': ' || m.text AS line FROM memories m JOIN banks b ON b.seq = m.bank
       WHERE m.state = 'valid' ORDER BY 1`).map(({ line }) => line)
    // the request under way is done or not begun
    const possible = [answered === 0 ? [] : script[answered - 1]!.then, script[answered]?.then ?? []]
    t.ok(possible.some(lines => JSON.stringify(lines) === JSON.stringify(found)), `step ${at}, ${answered} answered: ${found.join(', ')}`)
    for (const { seq } of store.all<{ seq: number }>('SELECT seq FROM banks')) {
      const indexed = store.all(`SELECT id FROM text_${seq}_docsize ORDER BY id`)
      t.same(indexed, store.all(`SELECT seq AS id FROM memories WHERE bank = ? AND state = 'valid' ORDER BY seq`, [seq]), 'index rows')
      store.exec(`INSERT INTO text_${seq} (text_${seq}) VALUES ('integrity-check')`)
    }
    const indexes = store.all(`SELECT name FROM sqlite_schema WHERE name GLOB 'text_[0-9]*' AND sql LIKE 'CREATE VIRTUAL%'`)
    t.equal(indexes.length, store.all('SELECT 1 FROM banks').length)
    store.close()
  }
})
