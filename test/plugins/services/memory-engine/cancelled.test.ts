import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import { oneFile } from '../../../one-file.js'
import { someOf } from '../../../whole.js'
import { cancellable, kinds, type Kind } from './cancelled-kinds.js'
import { consolidating } from './models-support.js'
import { noModels, openEngine, type Wire } from './support.js'

const child = await oneFile(fileURLToPath(new URL('./cancelled-child.js', import.meta.url)))

interface Ending {
  readonly cancels: 'cancel' | 'leave'
  readonly ends: 'kill' | 'close'
  /** Of an operation that was begun before. */
  readonly id?: string
}

/** Runs an engine of its own on the database until it ends. Returns the operation's id. */
async function run (path: string, kind: Kind, { cancels, ends, id }: Ending): Promise<string> {
  const process_ = spawn(process.execPath, [child, path, kind, cancels, ends, ...id === undefined ? [] : [id]], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said, [code, signal]] = await Promise.all([text(process_.stdout), once(process_, 'exit')])
  if (ends === 'kill' ? signal !== 'SIGKILL' : code !== 0) throw new Error(`${kind} ended with ${code} ${signal}`)
  return said
}

/** An engine on what another one left, where nothing fails and a model answers. */
function reopened (t: Test, path: string, kind: Kind): Wire {
  const store = openStore(path)
  store.exec('DROP TRIGGER fails; UPDATE operations SET next_retry_at = NULL')
  store.close()
  return openEngine(t, { path: () => path, run: consolidating, abilities: () => ({
    ...noModels, chat: { model: 'm', why: null }, extracts: cancellable[kind].extracts === true,
    ...cancellable[kind].embeds === true && { embed: { model: 'e', why: null } }
  }) })
}

async function completed (call: Wire['call'], id: string | undefined): Promise<void> {
  for (;;) {
    const { body: { status, error_message: error } } = await call('GET', `b/operations/${id}`)
    if (status === 'completed') return
    if (status !== 'pending' && status !== 'processing') throw new Error(`${status}: ${error}`)
  }
}

/** What is begun after it in the same lane is done, and it is not. */
async function staysCancelled (t: Test, path: string, kind: Kind, id: string): Promise<void> {
  const { writes, isDone } = cancellable[kind]
  const { engine, call } = reopened(t, path, kind)
  const status = async (): Promise<object> => {
    const { body } = await call('GET', `b/operations/${id}`)
    return [body.status, ...(body.child_operations ?? []).map((each: { readonly status: string }) => each.status)]
  }
  const cancelled = kind === 'retain' ? ['cancelled', 'cancelled'] : ['cancelled']
  t.same(await status(), cancelled)
  const { body } = writes === true
    ? await call('POST', 'b/memories', { items: [{ content: 'Another one.', document_id: 'other' }], async: true })
    : await call('POST', 'b/mental-models', { id: 'other', name: 'Other', source_query: 'What else do I say?' })
  await completed(call, body.operation_id)
  t.same(await status(), cancelled)
  t.notOk(await isDone(call), 'nothing of it is done')
  t.match(await call('DELETE', `b/operations/${id}`), { status: 409, body: { detail: /status is 'cancelled'/ } })
  await engine.close()
}

for (const kind of someOf(kinds, 3)) {
  t.test(`what a client cancelled stays so over a kill right behind the answer and over an ordinary restart: ${kind}`, async t => {
    const folder = t.testdir()
    for (const ends of ['kill', 'close'] as const) {
      const path = join(folder, `${ends}.db`)
      await staysCancelled(t, path, kind, await run(path, kind, { cancels: 'cancel', ends }))
    }
  })

  t.test(`what goes on after a kill can be cancelled then, and stays so after the next restart: ${kind}`, async t => {
    const folder = t.testdir()
    const begun = join(folder, 'begun.db')
    const id = await run(begun, kind, { cancels: 'leave', ends: 'kill' })
    for (const ends of ['kill', 'close'] as const) {
      t.equal(await run(begun, kind, { cancels: 'leave', ends, id }), id, 'it goes on')
    }
    await run(begun, kind, { cancels: 'cancel', ends: 'kill', id })
    await staysCancelled(t, begun, kind, id)
  })

  t.test(`what no client cancelled is done after a kill: ${kind}`, async t => {
    const path = join(t.testdir(), 'left.db')
    const id = await run(path, kind, { cancels: 'leave', ends: 'kill' })
    const { engine, call } = reopened(t, path, kind)
    await completed(call, id)
    t.ok(await cancellable[kind].isDone(call))
    await engine.close()
  })
}
