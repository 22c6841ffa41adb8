import t from 'tap'
import { someOf } from '../../../whole.js'
import { doomedGateway, killedAtEach, type KillPoint } from './gpu-kill.js'

// each death is a gateway and its engines, in processes of their own
t.setTimeout(600_000)
t.jobs = 2

const program = await doomedGateway()

const into: readonly KillPoint[] = [
  { type: 'gpu.mode', message: '-> claiming', left: 'inference' },
  { type: 'gpu.mode', message: '-> clearing', left: 'generation' },
  { type: 'slot.state', message: 'chat: ready -> unloading', left: 'generation' },
  { type: 'slot.state', message: 'chat: unloading -> offline', left: 'generation' },
  { type: 'gpu.mode', message: '-> img', left: 'generation' },
  { type: 'slot.state', message: 'img: offline -> starting', left: 'generation' },
  { type: 'slot.state', message: 'img: starting -> warming', left: 'generation' },
  { type: 'slot.state', message: 'img: warming -> serving', left: 'generation' }
]

const back: readonly KillPoint[] = [
  { type: 'gpu.mode', message: '-> yielding', left: 'generation' },
  { type: 'gpu.mode', message: '-> freeing', left: 'inference' },
  { type: 'slot.state', message: 'img: ready -> unloading', left: 'inference' },
  { type: 'slot.state', message: 'img: unloading -> offline', left: 'inference' },
  { type: 'gpu.mode', message: '-> reloading', left: 'inference' },
  { type: 'slot.state', message: 'chat: warming -> ready', left: 'inference' },
  { type: 'gpu.mode', message: '-> llm', left: 'inference' }
]

t.test('a gateway that is killed on the way into image mode leaves nothing in between to the next one', { buffered: true }, t => killedAtEach(t, program, 'into', someOf(into, 3)))
t.test('a gateway that is killed on the way out of image mode leaves nothing in between to the next one', { buffered: true }, t => killedAtEach(t, program, 'back', someOf(back, 3)))
