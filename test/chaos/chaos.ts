import { parseArgs } from 'node:util'
import { outage } from './outage.js'
import { outageTable } from './outage-table.js'
import { storm } from './storm.js'
import { verbs } from './verbs.js'

/**
 * `npm run chaos [-- --seconds 120 --seed 1 --json]`: the gateway under a mixed load while engines die, hang and start
 * badly, clients leave, image mode comes and goes, operators load, unload, edit and reload.
 * `npm run chaos -- --minutes 30 [--seed 1]`: the gateway itself is killed every few seconds while clients write, and its
 * disk, clock and container engine fail; every acknowledged write is read back.
 * `npm run chaos -- --verbs 10 [--seed 1]`: so many minutes of random verbs on services, agents, board, approvals and updates;
 * each has one outcome, none is a 500, and nothing is left of any.
 * Exit code 1 when a promise was broken.
 */
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '120' },
    minutes: { type: 'string' },
    verbs: { type: 'string' },
    seed: { type: 'string' },
    clients: { type: 'string', default: '48' },
    json: { type: 'boolean', default: false }
  }
})
const [seconds, clients] = [Number(values.seconds), Number(values.clients)]
const minutes = values.minutes === undefined ? null : Number(values.minutes)
const verbMinutes = values.verbs === undefined ? null : Number(values.verbs)
const long = verbMinutes ?? minutes
const seed = values.seed === undefined ? (long === null ? 1 : Math.floor(Math.random() * 2 ** 31)) : Number(values.seed)
const isSane = long === null ? seconds > 0 && seconds <= 300 && clients > 0 && clients <= 500 : long > 0 && long <= 600
if (!isSane || !Number.isInteger(seed)) {
  process.stderr.write('chaos: --seconds is 1 to 300, --minutes and --verbs up to 600, --seed a whole number, --clients 1 to 500\n')
  process.exit(2)
}
if (verbMinutes !== null) await runVerbs(verbMinutes)
else if (minutes === null) await runStorm()
else await runOutage(minutes)

async function runOutage (minutes: number): Promise<void> {
  process.stderr.write(`chaos: seed ${seed}\n`)
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort())
  const report = await outage({ seed, minutes, signal: interrupted.signal, onProgress: text => { process.stderr.write(`${text}\n`) } })
  process.stdout.write(values.json ? `${JSON.stringify({ ...report, writes: Object.fromEntries(report.writes) }, null, 2)}\n` : `${outageTable(report)}\n`)
  process.exitCode = report.problems.length === 0 ? 0 : 1
}

async function runVerbs (minutes: number): Promise<void> {
  process.stderr.write(`chaos: seed ${seed}\n`)
  const interrupted = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort())
  const report = await verbs({ seed, minutes, signal: interrupted.signal, onProgress: text => { process.stderr.write(`${text}\n`) } })
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
  process.exitCode = report.violations.length === 0 && report.left.length === 0 ? 0 : 1
}

async function runStorm (): Promise<void> {
  const report = await storm({
    seed,
    seconds,
    clients,
    requests: Infinity,
    calm: 12,
    onProgress: (done, faults) => { if (!values.json && done % 2000 === 0) process.stderr.write(`${done} requests, ${faults} faults\n`) }
  })
  const grew = report.heap === null ? 1 : report.heap.after / report.heap.before
  const ok = report.violations.length === 0 && report.left.length === 0 && report.open.length === 0 && grew < 1.25
  process.stdout.write(`${JSON.stringify({ ok, seed, heapGrowth: grew, ...report }, null, 2)}\n`)
  process.exitCode = ok ? 0 : 1
}
