import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { WHOLE } from '../../../whole.js'

const SEQUENCES = Number(process.env.SVC_TEST_SCRIPTS ?? (process.env[WHOLE] === undefined ? 60 : 200))

t.test('any sequence of writes leaves files that load, guards that hold, and dry runs that were right', { timeout: 600_000 }, async t => {
  // a process of its own: a gateway that a counterexample breaks is no business of the next file
  const child = fork(join(import.meta.dirname, 'sequences-child.js'), [String(SEQUENCES)], { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  let complaint = ''
  let seen: Record<string, number> = {}
  child.stderr!.on('data', (chunk: Buffer) => { complaint += chunk.toString() })
  child.on('message', (message: Record<string, number>) => { seen = message })
  const [code] = await once(child, 'close') as [number | null]
  t.equal(code, 0, complaint)
  for (const what of ['applied', 'refused', 'written']) t.ok((seen[what] ?? 0) > SEQUENCES / 10, `${what}: ${seen[what]}`)
})
t.setTimeout(600_000)
