import childProcess from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { withoutTrial } from '../../../../plugins/providers/llm-server/embedded/library/binary-trial.js'

const PROGRAM = '/library/testBindingBinary.js'
const { fork } = childProcess

t.test('a library whose release is known hears at once that its binary is well', async t => {
  const said: unknown[] = []
  await withoutTrial('3.21.1', async () => {
    const trial = childProcess.fork(PROGRAM)
    trial.on('message', message => { said.push(message) })
    await once(trial, 'message')
    trial.send({ type: 'start' })
    const ended = once(trial, 'exit')
    trial.send({ type: 'exit' })
    t.same(await ended, [0])
  })
  t.same(said, [{ type: 'ready' }, { type: 'done' }])
  t.equal(childProcess.fork, fork, 'afterwards processes start as they did')
})

t.test('a library of another release, and any other program, starts a process', async t => {
  await withoutTrial('3.22.0', async () => { t.equal(childProcess.fork, fork) })
  await t.rejects(withoutTrial('3.21.1', async () => {
    const [code] = await once(childProcess.fork('/nowhere/at-all.js', [], { execArgv: [], silent: true }), 'exit')
    throw new Error(`ended with ${String(code)}`)
  }), { message: 'ended with 1' })
  t.equal(childProcess.fork, fork, 'also when the library fails')
})
