import { svcError, type ConfigService, type NamedSlotConfig } from '../../contract/index.js'
import { SerialQueue } from '../../async/serial-queue.js'
import type { EnginePorts } from '../plan/launch/engine-ports.js'
import type { LaunchFailure } from '../schedule/scheduled-slot.js'

/** How many ports of its own choice a launch tries while others take them. */
const MOST_TRIES = 5

export interface PortPool {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

export interface PortClaims {
  /** Given to no slot. */
  readonly held: ReadonlySet<number>
  /** What slots that do not run had last: given when nothing else is left. */
  readonly remembered: ReadonlySet<number>
  /** Tried first, also outside the pool. */
  readonly preferred: readonly number[]
}

/** Ports that a launch may try, best first. Pure. */
export function portCandidates ({ start, end }: PortPool, { held, remembered, preferred }: PortClaims): number[] {
  const pool = Array.from({ length: Math.max(0, end - start + 1) }, (_, i) => start + i)
  const ranked = [...preferred, ...pool.filter(port => !remembered.has(port)), ...pool.filter(port => remembered.has(port))]
  return [...new Set(ranked)].filter(port => !held.has(port))
}

/** Ports that a slot had before, as recorded elsewhere. */
export interface FormerPorts {
  readonly port: number | null
  readonly ports?: Readonly<Record<string, number>>
}

/** In place of a name: the port that requests go to. */
const MAIN = ''
const NONE: EnginePorts['named'] = Object.freeze({})

/** Numbers by the name of the port. */
type Chosen = ReadonlyMap<string, number>

interface ClaimedPorts {
  readonly ports: EnginePorts
  /** Those without a number in the slot's file. */
  readonly chosen: Chosen
  readonly release: () => void
}

export interface SlotPortsDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  /** Whether a slot has an engine, or is getting one. */
  readonly isLive: (name: string) => boolean
  /** Names of the further ports of a slot's engine. */
  readonly names: (name: string) => readonly string[]
  /** The port that engines of a slot's kind have by custom. */
  readonly customary: (slot: NamedSlotConfig) => number | null
  /** Every port that is kept for engines of one kind. */
  readonly reserved: () => readonly number[]
  /** Keeps a free port from other gateways until it is released; null for one that is not free. */
  readonly claim: (port: number) => Promise<(() => void) | null>
}

/**
 * The ports of slots. One that a file names is the slot's. Any other, and each further one of an engine, is chosen at each
 * launch and is the slot's while its engine runs; the last one is tried first, and is another's when it is not free.
 */
export class SlotPorts {
  readonly #deps: SlotPortsDeps
  readonly #chosen = new Map<string, Chosen>()
  readonly #line = new SerialQueue()

  constructor (deps: SlotPortsDeps) {
    this.#deps = deps
  }

  /** Null for a slot without a port of its own. */
  named (name: string): number | null {
    return this.#deps.config.snapshot.slots.get(name)?.port ?? null
  }

  /** What a slot has, or had last; 0 for one that it never had. */
  latest (name: string): EnginePorts {
    return { port: this.named(name) ?? this.#last(name, MAIN) ?? 0, named: this.#named(name, port => this.#last(name, port)) }
  }

  /** The port that a slot has; null for one without an engine whose file names none. */
  current (name: string): number | null {
    return this.named(name) ?? (this.#deps.isLive(name) ? this.#last(name, MAIN) : null)
  }

  /** The further ports of the engine that runs. */
  currentNamed (name: string): EnginePorts['named'] {
    const chosen = this.#deps.isLive(name) ? this.#chosen.get(name) : undefined
    return chosen === undefined ? NONE : withoutMain(chosen)
  }

  /** The port that a slot has, else the one that a launch would try first. */
  expected (name: string): number | null {
    return this.current(name) ?? this.#candidates(name, MAIN, new Set())[0] ?? null
  }

  /** The same of all its ports; 0 where there is none available. */
  expectedAll (name: string): EnginePorts {
    const port = this.expected(name) ?? 0
    const given = new Set([port])
    return {
      port,
      named: this.#named(name, each => {
        const number = this.currentNamed(name)[each] ?? this.#candidates(name, each, given)[0] ?? null
        if (number !== null) given.add(number)
        return number
      })
    }
  }

  /**
   * Runs a launch on the slot's ports. Where something else took one of the gateway's own choice meanwhile, it is run again
   * on others. Rejects as `launch` does, and with `slot.no_free_port`.
   */
  async launch<T> (name: string, signal: AbortSignal, launch: (ports: EnginePorts) => Promise<T>): Promise<T> {
    const refused = new Set<number>()
    for (let tries = 1; ; tries++) {
      const { ports, chosen, release } = await this.#take(name, refused)
      try {
        return await launch(ports)
      } catch (error) {
        release()
        const failure = error as LaunchFailure
        const isOver = chosen.size === 0 || failure.leftover !== null || signal.aborted
        const taken = isOver ? [] : await this.#taken(name, failure, chosen)
        if (taken.length === 0) throw failure
        this.#chosen.set(name, new Map([...chosen].filter(([, port]) => !taken.includes(port))))
        for (const port of taken) refused.add(port)
        if (tries === MOST_TRIES) throw { ...failure, kind: 'heals' } satisfies LaunchFailure
      } finally {
        release()
      }
    }
  }

  /** A program that cannot listen only exits: whether that was why is seen once it is gone. */
  async #taken (name: string, { code }: LaunchFailure, chosen: Chosen): Promise<readonly number[]> {
    if (code !== 'slot.port_conflict' && code !== 'slot.load_failed') return []
    const taken: number[] = []
    for (const port of chosen.values()) {
      const release = await this.#deps.claim(port)
      release?.()
      if (release === null) taken.push(port)
    }
    // of ports on another machine nothing is seen from here
    return taken.length === 0 && code === 'slot.port_conflict' && this.named(name) === null ? [...chosen.values()] : taken
  }

  async #take (name: string, avoid: ReadonlySet<number>): Promise<ClaimedPorts> {
    const named = this.named(name)
    const wanted = [...named === null ? [MAIN] : [], ...this.#deps.names(name)]
    const claims: Array<() => void> = []
    const release = (): void => { for (const each of claims.splice(0)) each() }
    const chosen = new Map<string, number>()
    // two launches at once never get the same one
    await this.#line.run(async () => {
      for (const each of wanted) {
        const { port, claim } = await this.#claim(name, each, new Set([...avoid, ...chosen.values()]), release)
        claims.push(claim)
        chosen.set(each, port)
      }
      this.#chosen.set(name, chosen)
    })
    return { ports: { port: named ?? chosen.get(MAIN)!, named: withoutMain(chosen) }, chosen, release }
  }

  async #claim (
    name: string, each: string, avoid: ReadonlySet<number>, giveUp: () => void
  ): Promise<{ readonly port: number, readonly claim: () => void }> {
    for (const port of this.#candidates(name, each, avoid)) {
      const claim = await this.#deps.claim(port)
      if (claim !== null) return { port, claim }
    }
    giveUp()
    const { port_range_start: start, port_range_end: end } = this.#deps.config.snapshot.svc.slots
    throw svcError('slot.no_free_port',
      `every port from ${start} to ${end} is taken; unload a slot or widen port_range_start and port_range_end in svc.toml`,
      { details: { port_range_start: start, port_range_end: end } })
  }

  /** What an earlier gateway gave a slot, unless it belongs to another by now. */
  remember (name: string, { port, ports = {} }: FormerPorts): void {
    if (this.#chosen.has(name)) return
    const { slots } = this.#deps.config.snapshot
    const claimed = new Set([...[...slots.values()].flatMap(slot => slot.port ?? []), ...this.#others(name)])
    const had = [...port === null || this.named(name) !== null ? [] : [[MAIN, port] as const], ...Object.entries(ports)]
    const free = had.filter(([, number]) => !claimed.has(number))
    if (free.length > 0) this.#chosen.set(name, new Map(free))
  }

  forget (name: string): void {
    this.#chosen.delete(name)
  }

  #last (name: string, each: string): number | null {
    return this.#chosen.get(name)?.get(each) ?? null
  }

  #named (name: string, numberOf: (each: string) => number | null): EnginePorts['named'] {
    return Object.fromEntries(this.#deps.names(name).map(each => [each, numberOf(each) ?? 0]))
  }

  /** Ports that other slots have, or had last. */
  #others (name: string, which = (_slot: string): boolean => true): number[] {
    return [...this.#chosen].flatMap(([other, chosen]) => other !== name && which(other) ? [...chosen.values()] : [])
  }

  #candidates (name: string, each: string, avoid: ReadonlySet<number>): number[] {
    const { config: { snapshot: { slots, svc } }, customary, isLive, reserved } = this.#deps
    const { port_range_start: start, port_range_end: end } = svc.slots
    const slot = slots.get(name)
    const own = slot === undefined || each !== MAIN ? null : customary(slot)
    const last = this.#last(name, each)
    const siblings = [...this.#chosen.get(name) ?? []].flatMap(([other, port]) => other === each ? [] : [port])
    return portCandidates({ start, end }, {
      held: new Set([
        svc.server.port, ...avoid, ...[...slots.values()].flatMap(({ port }) => port ?? []),
        ...reserved().filter(port => port !== own),
        ...this.#others(name, isLive)
      ]),
      remembered: new Set([...this.#others(name), ...siblings]),
      preferred: [...own === null ? [] : [own], ...last !== null && last >= start && last <= end ? [last] : []]
    })
  }
}

function withoutMain (chosen: Chosen): Readonly<Record<string, number>> {
  // most engines have no further ones, and lists keep what they made of the same object
  return chosen.size === (chosen.has(MAIN) ? 1 : 0) ? NONE : Object.fromEntries([...chosen].filter(([each]) => each !== MAIN))
}
