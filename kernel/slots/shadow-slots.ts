import {
  isSvcError, svcError, type ConfigService, type ProviderCatalog, type SlotLease, type SlotStatus, type SvcError
} from '../contract/index.js'
import { namesOf, shadowsOf, shadowStatus, type Shadow } from './shadows/shadows.js'
import { unservedError } from './schedule/slot-errors.js'
import { ASLEEP } from './schedule/slot-refusals.js'
import type { SlotFleet } from './life/slot-fleet.js'

export interface ShadowSlotsDeps {
  readonly config: ConfigService
  readonly providers: ProviderCatalog
  readonly fleet: SlotFleet
}

interface Seen {
  readonly slots: ConfigService['snapshot']['slots']
  readonly shadows: ReadonlyMap<string, Shadow>
  readonly names: readonly string[]
}

/** Slots that live in another slot's engine: what they are now, and leases of that engine on their behalf. */
export class ShadowSlots {
  readonly #deps: ShadowSlotsDeps
  #seen: Seen | null = null

  constructor (deps: ShadowSlotsDeps) {
    this.#deps = deps
  }

  /** Providers came or went. */
  forget (): void {
    this.#seen = null
  }

  /** Null for a slot with an engine of its own, and for a name that is no slot's. */
  find (name: string): Shadow | null {
    return this.#look().shadows.get(name) ?? null
  }

  names (): readonly string[] {
    return this.#look().names
  }

  aliases (): ReadonlyArray<readonly [alias: string, slot: string]> {
    return [...this.#look().shadows].flatMap(([name, { child }]) => (child?.aliases ?? []).map(alias => [alias, name] as const))
  }

  status (shadow: Shadow): SlotStatus {
    const { fleet } = this.#deps
    const anchor = fleet.core(shadow.anchor) === null ? null : fleet.status(shadow.anchor)
    return shadowStatus(shadow, anchor, this.#launchedAs(shadow))
  }

  async* watch (shadow: Shadow, signal: AbortSignal): AsyncIterable<SlotStatus> {
    const { slot: { name }, anchor } = shadow
    const current = (): SlotStatus => this.status(this.find(name) ?? shadow)
    if (this.#deps.fleet.core(anchor) === null) yield current()
    else for await (const _ of this.#deps.fleet.feed(anchor).read(() => this.#deps.fleet.status(anchor), signal)) yield current()
  }

  tryAcquire (shadow: Shadow, light: boolean): SlotLease | null {
    if (!this.#isServed(shadow)) return null
    const lease = this.#deps.fleet.owner(shadow.anchor).tryAcquire(light)
    return lease === null ? null : onBehalf(shadow, lease)
  }

  /**
   * Waits for the anchor when it is on its way and for a worker of its engine. Brings back an engine that failed; one that
   * was unloaded stays so. Rejects with what its provider says in `unserved`.
   */
  async acquire (shadow: Shadow, signal: AbortSignal, light: boolean, low = false): Promise<SlotLease> {
    const { fleet } = this.#deps
    if (!shadow.slot.enabled || shadow.child === null || fleet.core(shadow.anchor) === null) throw this.#unserved(shadow)
    try {
      const lease = await fleet.owner(shadow.anchor).acquire(signal, light, { joins: true, low })
      if (this.#isServed(shadow)) return onBehalf(shadow, lease)
      lease.release()
    } catch (error) {
      if (!isSvcError(error) || error.details.reason !== ASLEEP) throw error
    }
    throw this.#unserved(shadow)
  }

  /** Whether the engine that runs was started with the child. */
  #isServed (shadow: Shadow): boolean {
    const launchedAs = this.#launchedAs(shadow)
    return shadow.slot.enabled && launchedAs !== null && shadow.child?.active(launchedAs) === true
  }

  #unserved ({ slot: { name, enabled, provider }, anchor }: Shadow): SvcError {
    return unservedError({ slot: name, anchor, enabled }, this.#deps.providers.get(provider), { details: { slot: name, anchor } })
  }

  #launchedAs (shadow: Shadow): Shadow['slot'] | null {
    return this.#deps.fleet.launchedAs(shadow.anchor)?.slot ?? null
  }

  #look (): Seen {
    const { slots } = this.#deps.config.snapshot
    if (this.#seen?.slots === slots) return this.#seen
    const shadows = shadowsOf(slots, name => this.#deps.providers.get(name))
    return this.#seen = { slots, shadows, names: Object.freeze([...namesOf(slots, shadows)]) }
  }
}

/** For what a shadow has no engine or file for. */
export function notItsOwn ({ slot: { name }, anchor }: Shadow, what: string): SvcError {
  return svcError('slot.config_error', `slot '${name}' is part of slot '${anchor}' and cannot be ${what} by itself; do that with '${anchor}'`,
    { details: { slot: name, anchor } })
}

function onBehalf ({ slot: { name }, child }: Shadow, lease: SlotLease): SlotLease {
  return {
    slot: name,
    provider: lease.provider,
    address: lease.address,
    modelId: child?.model ?? null,
    generation: lease.generation,
    heard: () => { lease.heard() },
    onRevoked: listener => { lease.onRevoked(listener) },
    release: broken => { lease.release(broken) }
  }
}
