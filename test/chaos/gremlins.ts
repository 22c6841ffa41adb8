import { isSvcError } from '../../kernel/contract/index.js'
import type { Random } from '../kernel/slots/random.js'
import type { Ledger } from './ledger.js'
import { answerOf, slots, type World } from './world.js'

type Fault = (world: World, random: Random) => unknown

/** Refusals that an operator may get in a storm: the slot is already going, gone, or not to be had. */
const expected = /^(2\d\d|40[0-9]|409|50[234])$/

function api (world: World, method: string, path: string, body?: object): Promise<string> {
  return world.gateway.fetch(path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  }).then(async answer => {
    const text = await answer.text()
    return expected.test(String(answer.status)) ? '' : `${method} ${path} answers ${answer.status} ${text.slice(0, 200)}`
  })
}

const faults: Readonly<Record<string, Fault>> = {
  'engine is killed': ({ runtime }, random) => runtime.crash(random.pick(slots), random.pick([1, 137, 139])),
  // what waits for a hanging engine waits until an operator does something about it
  'engine hangs': async (world, random) => {
    const slot = random.pick(slots)
    const engine = running(world, slot)
    if (engine === null) return
    engine.answer({ headAfterMs: Infinity })
    await new Promise(resolve => { setTimeout(resolve, 200 + random.int(500)) })
    if (running(world, slot) === engine) await world.runtime.crash(slot)
  },
  'engine breaks off': (world, random) => running(world, random.pick(slots))?.answer(request => ({ ...answerOf(request, 1), dieAfter: random.int(4) })),
  'engine heals': (world, random) => running(world, random.pick(slots))?.answer(request => answerOf(request, 1)),
  'engines start badly': (world, random) => world.temper({ failsToStart: random.pick([0, 0.3]), startsSlowly: random.pick([0, 0.7]), pieceMs: random.pick([0, 1, 5]) }),
  'upstream goes': world => world.setUpstream(false),
  'upstream comes': world => world.setUpstream(true),
  'unload': (world, random) => api(world, 'POST', `/api/slots/${random.pick(slots)}/unload`, random.chance(0.3) ? { force: true } : {}),
  'load': (world, random) => api(world, 'POST', `/api/slots/${random.pick(slots)}/load`, {}),
  'restart': (world, random) => api(world, 'POST', `/api/slots/${random.pick(slots)}/restart`, {}),
  'edit': (world, random) => api(world, 'PUT', `/api/slots/${random.pick(slots)}/config`, { workers: 1 + random.int(6) }),
  'disable': (world, random) => api(world, 'PUT', '/api/slots/utility/config', { enabled: random.chance(0.5) }),
  'new slot': world => api(world, 'POST', '/api/slots', { name: 'extra', type: 'llm', provider: 'fake', device: 'cpu' }),
  'use new slot': world => api(world, 'POST', '/api/slots/extra/load', {}),
  'delete new slot': world => api(world, 'DELETE', '/api/slots/extra?force=true'),
  'reload configuration': world => api(world, 'POST', '/api/settings/reload'),
  'reload plugins': world => api(world, 'POST', '/api/plugins/reload'),
  'image mode': world => flip(world, 'img'),
  'image mode ends': world => flip(world, 'llm'),
  'look around': async world => (await Promise.all(['/v1/models', '/api/slots', '/api/status', '/api/requests', '/api/plugins', '/api/events'].map(path => api(world, 'GET', path)))).join('')
}

/** Image mode may be on already, or pinned, or without a slot: only what is not told by name is wrong. */
function flip ({ gateway }: World, mode: 'img' | 'llm'): string {
  try {
    gateway.gateway.inference().gpu.switchTo(mode, { force: true })
    return ''
  } catch (error) {
    return isSvcError(error) ? '' : `switching to ${mode}: ${String(error)}`
  }
}

function running ({ runtime }: World, slot: string): ReturnType<World['runtime']['engine']> | null {
  try {
    return runtime.engine(slot)
  } catch {
    return null
  }
}

/** What goes wrong, one thing at a time, without waiting for the last one to be over. */
export class Gremlins {
  readonly #world: World
  readonly #ledger: Ledger
  readonly #random: Random
  readonly #running = new Set<Promise<unknown>>()
  readonly counts: Record<string, number> = {}

  constructor (world: World, ledger: Ledger, random: Random) {
    this.#world = world
    this.#ledger = ledger
    this.#random = random
  }

  strike (): void {
    const name = this.#random.pick(Object.keys(faults))
    this.counts[name] = (this.counts[name] ?? 0) + 1
    const strike = Promise.resolve(faults[name]!(this.#world, this.#random)).then(
      told => { if (typeof told === 'string' && told !== '') this.#ledger.violation(`${name}: ${told}`) },
      (error: unknown) => this.#ledger.violation(`${name}: ${String(error)} ${String((error as Error).cause ?? '')}`)
    ).finally(() => this.#running.delete(strike))
    this.#running.add(strike)
  }

  /** Resolves when everything that was started is over, and all is well again. */
  async leave (): Promise<void> {
    await Promise.all(this.#running)
    this.#world.temper({ failsToStart: 0, startsSlowly: 0, pieceMs: 1 })
    this.#world.setUpstream(true)
    await api(this.#world, 'PUT', '/api/slots/utility/config', { enabled: true })
    await api(this.#world, 'DELETE', '/api/slots/extra?force=true')
    for (const slot of slots) running(this.#world, slot)?.answer(request => answerOf(request, 1))
  }
}
