import type { Abilities } from '../../../../../plugins/services/memory-engine/messages.js'
import { operationsOf } from '../../../../../plugins/services/memory-engine/operations/operations.js'
import { consolidating, form } from '../models-support.js'
import { noModels } from '../support.js'
import { openProgram, say } from './program.js'
import { killBefore, toldProgram } from './steps.js'

/*
 * Opens a database, has background work of every kind done, says what was acknowledged and what is over, and is killed before the
 * database does the step whose number it is given; steps of its making count, too. Without a number it says how many there are.
 */

const { path, at } = toldProgram()
const { steps } = killBefore(at)
const changed: Array<() => void> = []
let abilities: Abilities = { ...noModels, chat: { model: 'm', why: null }, embed: { model: 'first', why: null } }
const { core, ask, done } = openProgram(path, {
  get abilities () { return abilities },
  onAbilities: listener => {
    changed.push(listener)
    return () => {}
  },
  run: consolidating
})

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
say('acknowledged undo')
abilities = { ...abilities, embed: { model: 'other', why: null } }
for (const listener of changed) listener()
// `get` is no step, so that waiting is none
const stale = `SELECT 1 FROM memories WHERE state = 'valid' AND vector_model IS NOT (SELECT seq FROM embed_models WHERE name = 'other')`
while (core.store.get(stale) !== undefined) await new Promise(resolve => { setImmediate(resolve) })
say('over vectors')
await ask('DELETE', 'a/documents/one')
say('acknowledged delete')
const { operation_ids: [file] } = await ask('POST', 'f/files/retain', ...form('files', 'a.txt', Buffer.from('A text of a file.'), 'text/plain')) as unknown as { readonly operation_ids: readonly string[] }
await done('file', { operation_id: file! })
await ask('POST', 'm/memories', { items: [{ content: 'before', document_id: 'd', context: 'sea' }] })
const { id } = core.store.get<{ id: string }>(`SELECT id FROM memories WHERE text = 'before'`)!
await ask('PATCH', `m/memories/${id}`, { text: 'after' })
say('acknowledged edit')
await done('refresh', await ask('POST', 'm/mental-models', { id: 'mm', name: 'All', source_query: 'What of the sea?' }))
say('begun extraction')
abilities = { ...abilities, extracts: true }
await ask('POST', 'x/memories', { items: [{ content: 'So I say.', document_id: 'd' }] })
say('acknowledged extraction')
const open = `SELECT 1 FROM operations WHERE status IN ('pending', 'processing')`
while (core.store.get(open) !== undefined) await new Promise(resolve => { setImmediate(resolve) })
say('over extraction')
say(`steps ${steps()}`)
process.exit()
