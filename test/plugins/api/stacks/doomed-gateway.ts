/**
 * A gateway that applies a stack and dies by SIGKILL at a chosen moment of it. Arguments: home, moment as JSON: the n-th
 * file operation of a name on a path, or an event.
 */
import { createTestGateway } from '../../../../kernel/testing/index.js'
import { watchedOps } from '../../../kernel/config/change.js'
import { plugins } from './crash-host.js'

export type Moment =
  | { readonly op: string, readonly path: string, readonly nth?: number }
  | { readonly event: string, readonly source?: string, readonly state?: string }

const home = process.argv[2]!
const moment = JSON.parse(process.argv[3]!) as Moment
let armed = false
let met = 0
const die = (): never => {
  process.kill(process.pid, 'SIGKILL')
  throw new Error('still alive')
}
const fileOps = watchedOps((_index, name, path) => {
  if (!armed || !('op' in moment) || name !== moment.op || !path.includes(moment.path)) return
  if (++met === (moment.nth ?? 1)) die()
})
const gateway = await createTestGateway({ home, plugins, fileOps })
const signal = new AbortController().signal
for (const slot of ['agent', 'old']) await gateway.slots.ensureReady(slot, signal)
armed = true
const { events } = gateway.gateway.kernel()
void (async () => {
  for await (const { type, source, data } of events.subscribe({}, signal)) {
    if (!('event' in moment) || type !== moment.event) continue
    if ((moment.source ?? source) === source && (moment.state ?? data.to) === data.to) die()
  }
})()
await gateway.fetch('/api/stacks/mine/apply', { method: 'POST' })
await gateway.close()
