import { writeSync } from 'node:fs'
import { startBackground } from '../../../../plugins/services/memory-engine/background.js'
import { operationsOf } from '../../../../plugins/services/memory-engine/operations/operations.js'
import { cancellable, FAILS, type Kind } from './cancelled-kinds.js'
import { openCore } from './killed/program.js'
import { noModels } from './support.js'

/*
 * Opens a database with a model that hangs, and begins an operation there unless it is given one. When that has begun, it cancels
 * it if it is to, says its id, and ends at once: killed, or closed in good order.
 */

const [path = '', kind = '', cancels = '', ends = '', given] = process.argv.slice(2)
const { begin, extracts = false, embeds = false } = cancellable[kind as Kind]
const { core, ask, close } = openCore(path, {
  abilities: { ...noModels, chat: { model: 'm', why: null }, extracts, ...embeds && { embed: { model: 'e', why: null } } },
  run: (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
})
core.store.exec(FAILS)
startBackground(core)

const id = given ?? await begin(ask, core.store)
const { table } = operationsOf(core)
const hasBegun = (): boolean => {
  const each = [table.get(id)!, ...table.children(id)].find(({ status, retryCount }) => status === 'processing' || retryCount > 0)
  return kind === 'waiting' ? table.list('b', { status: 'processing', limit: 1, offset: 0 }).total === 1 : each !== undefined
}
while (!hasBegun()) await new Promise(resolve => { setImmediate(resolve) })
if (cancels === 'cancel') await ask('DELETE', `b/operations/${id}`)
writeSync(1, id)
if (ends === 'kill') process.kill(process.pid, 'SIGKILL')
close()
process.exit()
