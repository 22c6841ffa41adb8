import { svcError, type ConfigService, type NamedSlotConfig } from '../../contract/index.js'
import { SerialQueue } from '../../async/serial-queue.js'
import type { LaunchFailure } from '../schedule/scheduled-slot.js'

/** How many ports of its own choice a launch tries while others take them. */
const MOST_TRIES = 5

export interface PortPool {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

export interface PortClaims {
  /** Nobody gets these. */
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

interface ClaimedPort {
  readonly port: number
  readonly release: () => void
}

export interface SlotPortsDeps {
  readonly config: Pick<ConfigService, 'snapshot'>
  /** Whether a slot has an engine, or is getting one. */
  readonly isLive: (name: string) => boolean
  /** The port that engines of a slot's kind have by custom. */
  readonly customary: (slot: NamedSlotConfig) => number | null
  /** Every port that is kept for engines of one kind. */
  readonly reserved: () => readonly number[]
  /** Keeps a free port from other gateways until it is released; null for one that is not free. */
  readonly claim: (port: number) => Promise<(() => void) | null>
}

/**
 * The ports of slots. One that a file names is the slot's. Any other slot gets a port at each launch and has it while its
 * engine runs; the last one is tried first, and is another's when it is not free.
 */
export class SlotPorts {
  readonly #deps: SlotPortsDeps
  readonly #chosen = new Map<string, number>()
  readonly #line = new SerialQueue()

  constructor (deps: SlotPortsDeps) {
    this.#deps = deps
  }

  /** Null for a slot without a port of its own. */
  named (name: string): number | null {
    return this.#deps.config.snapshot.slots.get(name)?.port ?? null
  }

  /** The port that a slot has, or had last. */
  latest (name: string): number | null {
    return this.named(name) ?? this.#chosen.get(name) ?? null
  }

  /** The port that a slot has; null for one without an engine whose file names none. */
  current (name: string): number | null {
    return this.named(name) ?? (this.#deps.isLive(name) ? this.#chosen.get(name) ?? null : null)
  }

  /** The port that a slot has, else the one that a launch would try first. */
  expected (name: string): number | null {
    return this.current(name) ?? this.#candidates(name, new Set())[0] ?? null
  }

  /**
   * Runs a launch on the slot's port. On one of the gateway's own choice that something else took meanwhile it is run again
   * on another. Rejects as `launch` does, and with `slot.no_free_port`.
   */
  async launch<T> (name: string, signal: AbortSignal, launch: (port: number) => Promise<T>): Promise<T> {
    const refused = new Set<number>()
    for (;;) {
      const { port, release } = await this.#take(name, refused)
      try {
        return await launch(port)
      } catch (error) {
        release()
        const failure = error as LaunchFailure
        const isOver = this.named(name) !== null || failure.leftover !== null || signal.aborted
        if (isOver || !await this.#wasTaken(failure, port)) throw failure
        this.#chosen.delete(name)
        if (refused.add(port).size >= MOST_TRIES) throw { ...failure, kind: 'heals' } satisfies LaunchFailure
      } finally {
        release()
      }
    }
  }

  /** A program that cannot listen only exits: whether that was why is seen once it is gone. */
  async #wasTaken ({ code }: LaunchFailure, port: number): Promise<boolean> {
    if (code !== 'slot.load_failed') return code === 'slot.port_conflict'
    const release = await this.#deps.claim(port)
    release?.()
    return release === null
  }

  async #take (name: string, avoid: ReadonlySet<number>): Promise<ClaimedPort> {
    const named = this.named(name)
    if (named !== null) return { port: named, release: () => {} }
    // two launches at once never get the same one
    return await this.#line.run(async () => {
      for (const port of this.#candidates(name, avoid)) {
        const claim = await this.#deps.claim(port)
        if (claim === null) continue
        this.#chosen.set(name, port)
        return { port, release: once(claim) }
      }
      const { port_range_start: start, port_range_end: end } = this.#deps.config.snapshot.svc.slots
      throw svcError('slot.no_free_port',
        `every port from ${start} to ${end} is taken; unload a slot or widen port_range_start and port_range_end in svc.toml`,
        { details: { port_range_start: start, port_range_end: end } })
    })
  }

  /** What an earlier gateway gave a slot, unless it belongs to another by now. */
  remember (name: string, port: number | null): void {
    const { slots } = this.#deps.config.snapshot
    if (port === null || this.#chosen.has(name) || this.named(name) !== null) return
    const isClaimed = [...slots.values()].some(slot => slot.port === port) || [...this.#chosen.values()].includes(port)
    if (!isClaimed) this.#chosen.set(name, port)
  }

  forget (name: string): void {
    this.#chosen.delete(name)
  }

  #candidates (name: string, avoid: ReadonlySet<number>): number[] {
    const { config: { snapshot: { slots, svc } }, customary, isLive, reserved } = this.#deps
    const { port_range_start: start, port_range_end: end } = svc.slots
    const slot = slots.get(name)
    const own = slot === undefined ? null : customary(slot)
    const others = [...this.#chosen].filter(([other]) => other !== name)
    const last = this.#chosen.get(name) ?? null
    return portCandidates({ start, end }, {
      held: new Set([
        svc.server.port, ...avoid, ...[...slots.values()].flatMap(({ port }) => port ?? []),
        ...reserved().filter(port => port !== own),
        ...others.filter(([other]) => isLive(other)).map(([, port]) => port)
      ]),
      remembered: new Set(others.map(([, port]) => port)),
      preferred: [...own === null ? [] : [own], ...last !== null && last >= start && last <= end ? [last] : []]
    })
  }
}

function once (work: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) work()
    isDone = true
  }
}
