import { writeSync } from 'node:fs'
import { startBackground } from '../../../../plugins/services/memory-engine/background.js'
import type { Core } from '../../../../plugins/services/memory-engine/core.js'
import { operationsOf } from '../../../../plugins/services/memory-engine/operations/operations.js'
import { answerRequest } from '../../../../plugins/services/memory-engine/router.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { cancellable, FAILS, type Kind } from './cancelled-kinds.js'
import { bytesOf, noModels } from './support.js'

/*
 * Opens a database with a model that hangs, and begins an operation there unless it is given one. When that has begun, it cancels
 * it if it is to, says its id, and ends at once: killed, or closed in good order.
 */

const [path = '', kind = '', cancels = '', ends = '', given] = process.argv.slice(2)
const { begin, extracts = false } = cancellable[kind as Kind]
const closing = new AbortController()
const core: Core = {
  store: openStore(path), now: () => Date.now(), log: () => {}, closing: closing.signal,
  outside: {
    abilities: { ...noModels, chat: { model: 'm', why: null }, extracts }, onAbilities: () => () => {},
    run: (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
  },
  hooks: { retaining: [], retained: [], answered: [], retainLater: null }
}
core.store.exec(FAILS)
startBackground(core)

async function call (method: string, target: string, body?: object): Promise<Record<string, string>> {
  const answer = await answerRequest(core, {
    method, path: `/v1/default/banks/${target}`, query: '', headers: { 'content-type': 'application/json' },
    body: Buffer.from(body === undefined ? '' : JSON.stringify(body)), signal: new AbortController().signal
  })
  const text = (await bytesOf(answer)).toString()
  if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${text}`)
  return JSON.parse(text) as Record<string, string>
}

const id = given ?? await begin(call, core.store)
const { table } = operationsOf(core)
const hasBegun = (): boolean => {
  const each = [table.get(id)!, ...table.children(id)].find(({ status, retryCount }) => status === 'processing' || retryCount > 0)
  return kind === 'waiting' ? table.list('b', { status: 'processing', limit: 1, offset: 0 }).total === 1 : each !== undefined
}
while (!hasBegun()) await new Promise(resolve => { setImmediate(resolve) })
if (cancels === 'cancel') await call('DELETE', `b/operations/${id}`)
writeSync(1, id)
if (ends === 'kill') process.kill(process.pid, 'SIGKILL')
closing.abort(new Error('the memory engine is closing'))
core.store.close()
process.exit()
