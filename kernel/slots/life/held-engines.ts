import { messageOf, NAME_PATTERN, type ConfigSnapshot, type HeldEngine, type Logger } from '../../contract/index.js'
import type { ContainerRuntime, EngineInspection } from '../../runtime/container-runtime.js'
import type { ExitHub } from './exit-hub.js'
import type { SlotStateFile } from './slot-state-file.js'

export interface HeldEnginesDeps {
  readonly runtime: Pick<ContainerRuntime, 'remove'>
  readonly exits: Pick<ExitHub, 'onExit'>
  readonly log: Logger
}

export interface Held {
  readonly engine: EngineInspection
  /** What the earlier gateway wrote down of the slot. */
  readonly state: SlotStateFile | null
}

/** Whether a slot is missing because its file, or the folder, could not be read at the first load. Pure. */
export function isUnread ({ slots, diagnostics }: Pick<ConfigSnapshot, 'slots' | 'diagnostics'>, name: string): boolean {
  return !slots.has(name) && diagnostics.some(({ file }) => file === `slots/${name}.toml` || file === 'slots')
}

/**
 * Names of the slots that are left out because their files cannot be read; where the folder itself cannot be, those that
 * have an engine. Pure.
 */
export function unreadNames (snapshot: Pick<ConfigSnapshot, 'slots' | 'diagnostics'>, held: readonly string[]): readonly string[] {
  const files = snapshot.diagnostics.map(({ file }) => /^slots\/(.+)\.toml$/.exec(file)?.[1] ?? '').filter(name => NAME_PATTERN.test(name))
  return [...new Set([...files, ...held])].filter(name => isUnread(snapshot, name)).sort()
}

/** Engines of an earlier run whose slots' files cannot be read. They run on until a file says what becomes of them. */
export class HeldEngines {
  readonly #deps: HeldEnginesDeps
  readonly #held = new Map<string, Held & { readonly unwatch: () => void }>()

  constructor (deps: HeldEnginesDeps) {
    this.#deps = deps
  }

  hold (slot: string, engine: EngineInspection, state: SlotStateFile | null): void {
    const { exits, log } = this.#deps
    log.warn({ slot, engine: engine.id, name: engine.name },
      `the file of slot '${slot}' cannot be read, so its engine is left running; mend the file and run \`svc config reload\``)
    const unwatch = exits.onExit(engine.id, () => {
      this.#held.delete(slot)
      log.warn({ slot, engine: engine.id }, 'an engine whose slot file cannot be read has ended')
      void this.#remove(engine)
    })
    this.#held.set(slot, { engine, state, unwatch })
  }

  /** Hands one over; null when there is none. */
  take (slot: string): Held | null {
    const held = this.#held.get(slot)
    if (held === undefined) return null
    this.#held.delete(slot)
    held.unwatch()
    return held
  }

  names (): readonly string[] {
    return [...this.#held.keys()]
  }

  find (slot: string): HeldEngine | null {
    const held = this.#held.get(slot)
    return held === undefined ? null : { label: held.engine.label, address: held.engine.address }
  }

  async close (keepsEngine: (slot: string) => boolean): Promise<void> {
    await Promise.all(this.names().map(async name => {
      const { engine } = this.take(name)!
      if (!keepsEngine(name)) await this.#remove(engine)
    }))
  }

  async #remove (engine: EngineInspection): Promise<void> {
    try {
      await this.#deps.runtime.remove(engine.id)
    } catch (error) {
      this.#deps.log.error({ engine: engine.id, error: messageOf(error) }, 'an engine of an earlier run could not be removed')
    }
  }
}
