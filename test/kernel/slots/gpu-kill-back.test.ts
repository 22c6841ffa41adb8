import t from 'tap'
import { killedAt, type KillPoint } from './gpu-kill.js'

// each is two gateways and their engines, in processes of their own
t.setTimeout(240_000)
t.jobs = 4

const points: readonly KillPoint[] = [
  { type: 'gpu.mode', message: '-> yielding', left: 'generation' },
  { type: 'gpu.mode', message: '-> freeing', left: 'inference' },
  { type: 'slot.state', message: 'img: ready -> unloading', left: 'inference' },
  { type: 'slot.state', message: 'img: unloading -> offline', left: 'inference' },
  { type: 'gpu.mode', message: '-> reloading', left: 'inference' },
  { type: 'slot.state', message: 'chat: warming -> ready', left: 'inference' },
  { type: 'gpu.mode', message: '-> llm', left: 'inference' }
]

for (const point of points) {
  t.test(`killed at ${point.type} ${point.message}`, { buffered: true }, t => killedAt(t, 'back', point))
}
