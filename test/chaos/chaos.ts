import { parseArgs } from 'node:util'
import { storm } from './storm.js'

/**
 * `npm run chaos [-- --seconds 300 --seed 1 --json]`: the gateway under a mixed load while engines die, hang and start
 * badly, clients leave, image mode comes and goes, operators load, unload, edit and reload. Exit code 1 when a promise
 * was broken.
 */
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '120' }, seed: { type: 'string', default: '1' }, clients: { type: 'string', default: '48' }, json: { type: 'boolean', default: false } }
})
const [seconds, seed, clients] = [values.seconds, values.seed, values.clients].map(Number) as [number, number, number]
if (!(seconds > 0 && seconds <= 300) || !Number.isInteger(seed) || !(clients > 0 && clients <= 500)) {
  process.stderr.write('chaos: --seconds is 1 to 300, --seed a whole number, --clients 1 to 500\n')
  process.exit(2)
}
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
