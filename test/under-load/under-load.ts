/*
 * The test command on a machine that has other work: `npm test` beside eight busy loops, three times. A test that fails
 * here and not elsewhere takes for granted that something happens in time. Run by hand: it takes an hour on two cores.
 */

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { root } from '../repository.js'

const { values } = parseArgs({ options: { loops: { type: 'string', default: '8' }, times: { type: 'string', default: '3' } } })
const [loops, times] = [Number(values.loops), Number(values.times)]

const busy: readonly ChildProcess[] = Array.from({ length: loops }, () => spawn(process.execPath, ['--eval', 'for (;;) {}'], { stdio: 'ignore' }))
const rows: string[] = []
try {
  for (let time = 1; time <= times; time++) {
    const begun = performance.now()
    const [code] = await once(spawn('npm', ['test'], { cwd: root, stdio: 'inherit' }), 'exit') as [number | null]
    rows.push(`${time} of ${times} beside ${loops} busy loops: ${code === 0 ? 'green' : 'RED'}, ${((performance.now() - begun) / 1000).toFixed(0)} s`)
    if (code !== 0) process.exitCode = 1
  }
} finally {
  for (const child of busy) child.kill()
}
process.stdout.write(`\n${rows.join('\n')}\n`)
