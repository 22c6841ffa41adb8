import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'

const SEQUENCES = Number(process.env.SVC_TEST_SCRIPTS ?? 600)
// processes of their own: one for each of two cores
const PARTS = 2

t.test('any sequence of writes leaves files that load, guards that hold, and dry runs that were right', { timeout: 600_000 }, async t => {
  const counts = await Promise.all(Array.from({ length: PARTS }, async (_, part) => {
    const args = [String(SEQUENCES / PARTS), String(part)]
    const child = fork(join(import.meta.dirname, 'sequences-child.js'), args, { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
    t.teardown(() => child.kill('SIGKILL'))
    let complaint = ''
    let seen: Record<string, number> = {}
    child.stderr!.on('data', (chunk: Buffer) => { complaint += chunk.toString() })
    child.on('message', (message: Record<string, number>) => { seen = message })
    const [code] = await once(child, 'close') as [number | null]
    t.equal(code, 0, complaint)
    return seen
  }))
  for (const what of ['applied', 'refused', 'written']) {
    const count = counts.reduce((sum, seen) => sum + (seen[what] ?? 0), 0)
    t.ok(count > SEQUENCES / 10, `${what}: ${count}`)
  }
})
t.setTimeout(600_000)
