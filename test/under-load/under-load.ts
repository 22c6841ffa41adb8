/*
 * The test command on a machine that has other work: `npm test` beside eight busy loops, three times. A test that fails
 * here and not elsewhere takes for granted that something happens in time. Run by hand: it takes some forty minutes on two cores.
 */

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { root } from '../repository.js'

const { values } = parseArgs({ options: { loops: { type: 'string', default: '8' }, times: { type: 'string', default: '3' } } })
const [loops, times] = [Number(values.loops), Number(values.times)]

// they end with this program, however it ends
const loop = `while (process.ppid === ${process.pid}) {}`
const busy: readonly ChildProcess[] = Array.from({ length: loops }, () => spawn(process.execPath, ['--eval', loop], { stdio: 'ignore' }))
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort(new Error(`ended by ${signal}`)))
const rows: string[] = []
try {
  for (let time = 1; time <= times; time++) {
    const begun = performance.now()
    const [code] = await once(spawn('npm', ['test'], { cwd: root, stdio: 'inherit', signal: stop.signal }), 'exit') as [number | null]
    rows.push(`${time} of ${times} beside ${loops} busy loops: ${code === 0 ? 'green' : 'RED'}, ${((performance.now() - begun) / 1000).toFixed(0)} s`)
    if (code !== 0) process.exitCode = 1
  }
} catch (error) {
  if (!stop.signal.aborted) throw error
  process.exitCode = 1
} finally {
  for (const child of busy) child.kill()
}
process.stdout.write(`\n${rows.join('\n')}\n`)
