import { writeSync } from 'node:fs'
import { startBackground } from '../../../../plugins/services/memory-engine/background.js'
import type { Core } from '../../../../plugins/services/memory-engine/core.js'
import type { Abilities } from '../../../../plugins/services/memory-engine/messages.js'
import { operationsOf } from '../../../../plugins/services/memory-engine/operations/operations.js'
import { answerRequest } from '../../../../plugins/services/memory-engine/router.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import { consolidating, form } from './models-support.js'
import { bytesOf, noModels } from './support.js'

/*
 * Opens a database, has background work of every kind done, says what was acknowledged and what is over, and is killed before the
 * database does the step whose number it is given; steps of its making count, too. Without a number it says how many there are.
 */

const [path, at] = [process.argv[2]!, Number(process.argv[3] ?? Infinity)]
let steps = 0
for (const name of ['all', 'run', 'exec', 'transaction'] as const) {
  const own = Store.prototype[name] as (...args: unknown[]) => unknown
  Store.prototype[name] = function (this: Store, ...args: unknown[]): never {
    if (++steps === at) process.kill(process.pid, 'SIGKILL')
    return own.apply(this, args) as never
  }
}
const changed: Array<() => void> = []
let abilities: Abilities = { ...noModels, chat: { model: 'm', why: null }, embed: { model: 'first', why: null } }
const core: Core = {
  store: openStore(path), now: () => Date.now(), log: () => {}, closing: new AbortController().signal,
  outside: {
    get abilities () { return abilities },
    onAbilities: listener => {
      changed.push(listener)
      return () => {}
    },
    run: consolidating
  },
  hooks: { retaining: [], retained: [], answered: [], retainLater: null }
}
startBackground(core)
const waiting = new Map<string, () => void>()
const ended = new Set<string>()
operationsOf(core).ended.push(({ id, parentId }) => {
  for (const each of [id, parentId ?? id]) {
    ended.add(each)
    waiting.get(each)?.()
  }
})

async function ask (method: string, target: string, body?: Buffer | object, headers: Record<string, string> = { 'content-type': 'application/json' }): Promise<Record<string, string>> {
  const sent = body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
  const [place = '', query = ''] = target.split('?')
  const answer = await answerRequest(core, {
    method, path: place.startsWith('/') ? place : `/v1/default/banks/${place}`, query, headers, body: sent, signal: new AbortController().signal
  })
  const bytes = await bytesOf(answer)
  if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${bytes.toString()}`)
  return answer.headers['content-type'] === 'application/zip' ? { bytes: bytes.toString('base64') } : JSON.parse(bytes.toString()) as Record<string, string>
}

/** Says that a request was acknowledged, and waits until its operation is over. */
async function done (name: string, { operation_id: id }: Record<string, string>): Promise<void> {
  writeSync(1, `acknowledged ${name}\n`)
  if (!ended.has(id!)) await new Promise<void>(resolve => waiting.set(id!, resolve))
  writeSync(1, `over ${name}\n`)
}

const items = ['one', 'two', 'three'].map(content => ({ content, document_id: content }))
await done('retain', await ask('POST', 'a/memories', { items, async: true }))
await done('export', await ask('POST', 'a/document-transfer/export'))
const { storage_key: key } = operationsOf(core).table.list('a', { type: 'export_documents', limit: 1, offset: 0 }).operations[0]!.result as Record<string, string>
const { bytes } = await ask('GET', `/v1/default/files/download/${key}`)
await ask('PUT', 'c', {})
await done('import', await ask('POST', 'c/document-transfer', ...form('file', 'a.zip', Buffer.from(bytes!, 'base64'))))
await done('replacement', await ask('POST', 'c/document-transfer?on_conflict=replace', ...form('file', 'a.zip', Buffer.from(bytes!, 'base64'))))
const consolidation = await ask('POST', 'c/consolidate')
await done('consolidation', consolidation)
await done('clone', await ask('POST', 'a/clone?target_bank_id=d'))
await ask('POST', `c/operations/${consolidation.operation_id!}/undo`)
writeSync(1, 'acknowledged undo\n')
abilities = { ...abilities, embed: { model: 'other', why: null } }
for (const listener of changed) listener()
// `get` is no step, so that waiting is none
const stale = `SELECT 1 FROM memories WHERE state = 'valid' AND vector_model IS NOT (SELECT seq FROM embed_models WHERE name = 'other')`
while (core.store.get(stale) !== undefined) await new Promise(resolve => { setImmediate(resolve) })
writeSync(1, 'over vectors\n')
await ask('DELETE', 'a/documents/one')
writeSync(1, 'acknowledged delete\n')
const { operation_ids: [file] } = await ask('POST', 'f/files/retain', ...form('files', 'a.txt', Buffer.from('A text of a file.'), 'text/plain')) as unknown as { readonly operation_ids: readonly string[] }
await done('file', { operation_id: file! })
await ask('POST', 'm/memories', { items: [{ content: 'before', document_id: 'd' }] })
const { id } = core.store.get<{ id: string }>(`SELECT id FROM memories WHERE text = 'before'`)!
await ask('PATCH', `m/memories/${id}`, { text: 'after' })
writeSync(1, 'acknowledged edit\n')
await done('refresh', await ask('POST', 'm/mental-models', { id: 'mm', name: 'All', source_query: 'What is there?' }))
writeSync(1, 'begun extraction\n')
abilities = { ...abilities, extracts: true }
await ask('POST', 'x/memories', { items: [{ content: 'So I say.', document_id: 'd' }] })
writeSync(1, 'acknowledged extraction\n')
const open = `SELECT 1 FROM operations WHERE status IN ('pending', 'processing')`
while (core.store.get(open) !== undefined) await new Promise(resolve => { setImmediate(resolve) })
writeSync(1, 'over extraction\n')
writeSync(1, `steps ${steps}\n`)
process.exit()
