import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { HostileRequests, seeded, type ApiDocument } from './requests.js'
import { send } from './send.js'

/** `npm run hostile -- --count 100000 --seed 1`: see test/README.md. Ends with 1 when something did not hold. */
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '120' }
  }
})
const [count, seed, minutes] = [Number(values.count), Number(values.seed), Number(values.minutes)]
const BUDGET_MS = 50
/** No collection takes this much: what changes something may cost it the first time alone. */
const NEVER_MS = 10 * BUDGET_MS
const BUDGET_BYTES = 64 * 1024

interface Usage {
  readonly cpu: NodeJS.CpuUsage
  readonly rss: number
  readonly sockets: number
  readonly failures: readonly string[]
}

const child = fork(fileURLToPath(new URL('./hostile-gateway.js', import.meta.url)))
const [{ baseUrl, home }] = await once(child, 'message') as [{ baseUrl: string, home: string }]
let crashed = false
child.on('exit', () => { crashed = true })
const usage = async (): Promise<Usage> => {
  const answer = once(child, 'message') as Promise<[Usage]>
  child.send('usage')
  return (await answer)[0]
}
const total = ({ cpu }: Usage): number => (cpu.user + cpu.system) / 1000

const document = await (await fetch(`${baseUrl}/api/openapi.json`)).json() as ApiDocument
const requests = new HostileRequests(document, seeded(seed), home)
const statuses = new Map<string, number>()
const failures: string[] = []
const slowest: Array<{ readonly ms: number, readonly what: string }> = []
const end = performance.now() + minutes * 60_000
let before = await usage()
let settledRss = 0
let sent = 0
for (; sent < count && !crashed && performance.now() < end; sent++) {
  const request = requests.next()
  const outcome = await send(baseUrl, request)
  const after = await usage()
  const ms = total(after) - total(before)
  before = after
  const what = `#${sent} ${request.kind} ${request.method} ${request.path.slice(0, 120)} (${request.body?.length ?? 0} bytes)`
  const key = `${request.kind} ${outcome.status === null ? 'none' : `${Math.floor(outcome.status / 100)}xx`}`
  statuses.set(key, (statuses.get(key) ?? 0) + 1)
  if (outcome.status === null && !crashed) failures.push(`no answer: ${what}`)
  if (outcome.status === 500) failures.push(`500: ${what}: ${outcome.text.slice(-400)}`)
  slowest.push({ ms, what })
  if (slowest.length > 2_000) slowest.sort((a, b) => b.ms - a.ms).splice(20)
  const share = Math.max(1, (request.body?.length ?? 0) / BUDGET_BYTES)
  if (ms > NEVER_MS * share && sent > 500) failures.push(`${ms.toFixed(0)} ms of processor time: ${what}`)
  // one time in three a collection falls into it: what counts is a cost that comes again
  else if (ms > BUDGET_MS * share && sent > 500) {
    const again = []
    for (let i = 0; i < 3 && !crashed; i++) {
      const from = total(await usage())
      await send(baseUrl, request)
      again.push(total(await usage()) - from)
    }
    if (Math.min(...again) > BUDGET_MS * share) failures.push(`${Math.min(...again).toFixed(0)} ms of processor time: ${what}`)
    before = await usage()
  }
  if (sent === Math.floor(count / 5)) settledRss = after.rss
  if (sent % 5_000 === 0 && sent > 0) process.stdout.write(`${sent} sent, ${failures.length} failures, ${Math.round(after.rss / 1e6)} MB\n`)
}
if (crashed) {
  failures.push('the gateway is gone')
} else {
  const last = await usage()
  if (last.sockets > 20) failures.push(`${last.sockets} sockets are left`)
  if (settledRss > 0 && last.rss > settledRss * 1.5 + 100e6) {
    failures.push(`memory grew from ${Math.round(settledRss / 1e6)} to ${Math.round(last.rss / 1e6)} MB`)
  }
  for (const failure of last.failures) process.stdout.write(`log: ${failure}\n`)
  child.disconnect()
}
slowest.sort((a, b) => b.ms - a.ms)
process.stdout.write(`\nseed ${seed}: ${sent} requests\n`)
for (const [key, n] of [...statuses].sort()) process.stdout.write(`${key.padEnd(24)} ${n}\n`)
for (const { ms, what } of slowest.slice(0, 8)) process.stdout.write(`${ms.toFixed(0).padStart(6)} ms  ${what}\n`)
for (const failure of failures.slice(0, 50)) process.stdout.write(`FAILED ${failure}\n`)
process.exitCode = failures.length === 0 ? 0 : 1
