import t from 'tap'
import { killedAt, type KillPoint } from './gpu-kill.js'

// each is two gateways and their engines, in processes of their own
t.setTimeout(240_000)
t.jobs = 4

const points: readonly KillPoint[] = [
  { type: 'gpu.mode', message: '-> claiming', left: 'inference' },
  { type: 'gpu.mode', message: '-> clearing', left: 'generation' },
  { type: 'slot.state', message: 'chat: ready -> unloading', left: 'generation' },
  { type: 'slot.state', message: 'chat: unloading -> offline', left: 'generation' },
  { type: 'gpu.mode', message: '-> img', left: 'generation' },
  { type: 'slot.state', message: 'img: offline -> starting', left: 'generation' },
  { type: 'slot.state', message: 'img: starting -> warming', left: 'generation' },
  { type: 'slot.state', message: 'img: warming -> serving', left: 'generation' }
]

for (const point of points) {
  t.test(`killed at ${point.type} ${point.message}`, { buffered: true }, t => killedAt(t, 'into', point))
}
