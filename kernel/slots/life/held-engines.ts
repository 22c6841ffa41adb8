import {
  messageOf, NAME_PATTERN, svcError, type ConfigSnapshot, type HeldEngine, type Logger, type ModelRegistry
} from '../../contract/index.js'
import { configFiles, slotFile } from '../../config/parts/config-parts.js'
import type { ContainerRuntime, EngineInspection } from '../../contract/provider/engine-runtime.js'
import { placeOf } from '../plan/launch/engine-place.js'
import type { ExitHub } from './watch/exit-hub.js'
import type { PlacedSlot } from '../gpu/gpu-groups.js'
import type { SlotStateFile } from './kept/slot-state-file.js'

export interface HeldEnginesDeps {
  readonly runtime: Pick<ContainerRuntime, 'remove'>
  readonly exits: Pick<ExitHub, 'onExit'>
  readonly log: Logger
  /** As `FleetDeps.watchRelease`. */
  readonly watchRelease: (slot: string) => Promise<() => Promise<void>>
  /** A held engine is gone: what it took of a GPU is free. */
  readonly gone: () => void
}

export interface Held {
  readonly engine: EngineInspection
  /** What the earlier gateway wrote down of the slot. */
  readonly state: SlotStateFile | null
  /** The file that cannot be read, below the configuration root; `registry.toml` lies elsewhere. */
  readonly file: string
}

type Files = Pick<ConfigSnapshot, 'slots' | 'profiles' | 'diagnostics'>

/** Whether a slot is missing because its file, or the folder, could not be read at the first load. Pure. */
export function isUnread ({ slots, diagnostics }: Pick<Files, 'slots' | 'diagnostics'>, name: string): boolean {
  return !slots.has(name) && diagnostics.some(({ file }) => file === slotFile(name) || file === 'slots')
}

/**
 * The file that could not be read at the first load and without which it is unknown what the slot should run: its own, or the
 * one of its profile or its model. Null when all is known, and for a slot that is switched off. Pure.
 * @param modelOf the model that is in force
 */
export function unreadFile (
  files: Files, models: Pick<ModelRegistry, 'isUnread'>, name: string, modelOf: () => string | null
): string | null {
  const slot = files.slots.get(name)
  if (slot === undefined) return isUnread(files, name) ? slotFile(name) : null
  const { enabled, profile } = slot
  if (!enabled) return null
  if (profile !== null && !files.profiles.has(profile) && files.diagnostics.some(isAbout(profile))) return configFiles.profiles
  const model = modelOf()
  return model !== null && models.isUnread?.(model) === true ? 'registry.toml' : null
}

/** A problem of the whole catalogue, or of this profile in it. */
function isAbout (profile: string): (diagnostic: ConfigSnapshot['diagnostics'][number]) => boolean {
  const key = `profile.${profile}`
  return ({ file, path }) => file === configFiles.profiles && (['', 'profile', key].includes(path) || path.startsWith(`${key}.`))
}

/**
 * Names of the slots that are left out because their files cannot be read; where the folder itself cannot be, those that
 * have an engine. Pure.
 */
export function unreadNames (snapshot: Pick<ConfigSnapshot, 'slots' | 'diagnostics'>, held: readonly string[]): readonly string[] {
  const files = snapshot.diagnostics.map(({ file }) => /^slots\/(.+)\.toml$/.exec(file)?.[1] ?? '').filter(name => NAME_PATTERN.test(name))
  return [...new Set([...files, ...held])].filter(name => isUnread(snapshot, name)).sort()
}

export function heldMessage ({ file }: Pick<HeldEngine, 'file'>): string {
  return `${file} cannot be read; the slot's engine is left running; fix the file and run \`svc config reload\``
}

/** Engines of an earlier run of which an unreadable file keeps unknown what they should be. They run on until it is mended. */
export class HeldEngines {
  readonly #deps: HeldEnginesDeps
  readonly #held = new Map<string, Held & { readonly unwatch: () => void, readonly place: PlacedSlot | null }>()

  constructor (deps: HeldEnginesDeps) {
    this.#deps = deps
  }

  hold (slot: string, held: Held): void {
    const { exits, log } = this.#deps
    const { engine, file } = held
    log.warn({ slot, engine: engine.id, name: engine.name, file },
      `${file} cannot be read, so the engine of slot '${slot}' is left running; fix the file and run \`svc config reload\``)
    const unwatch = exits.onExit(engine.id, () => {
      this.#held.delete(slot)
      log.warn({ slot, engine: engine.id }, `the engine that was left running for slot '${slot}' has ended`)
      void this.#remove(engine)
      this.#deps.gone()
    })
    this.#held.set(slot, { ...held, unwatch, place: placeOf(slot, engine) })
  }

  /** Hands one over; null when there is none. */
  take (slot: string): Held | null {
    const held = this.#held.get(slot)
    if (held === undefined) return null
    this.#held.delete(slot)
    held.unwatch()
    return held
  }

  /** Ends one; resolves when its memory is free. Rejects when it cannot be removed: it is held on then. */
  async stop (slot: string): Promise<void> {
    const held = this.#held.get(slot)
    if (held === undefined) return
    const { runtime, log, watchRelease, gone } = this.#deps
    const released = await watchRelease(slot)
    await runtime.remove(held.engine.id)
    if (this.#held.get(slot) === held) this.take(slot)
    log.info({ slot, engine: held.engine.id }, `the engine that was left running for slot '${slot}' is stopped`)
    await released()
    gone()
  }

  names (): readonly string[] {
    return [...this.#held.keys()]
  }

  stateOf (slot: string): SlotStateFile | null {
    return this.#held.get(slot)?.state ?? null
  }

  find (slot: string): HeldEngine | null {
    const held = this.#held.get(slot)
    return held === undefined ? null : { label: held.engine.label, address: held.engine.address, file: held.file }
  }

  /** For the moment before a launch: a slot never has two engines. Throws `slot.config_error`. */
  assertNone (slot: string): void {
    const held = this.find(slot)
    if (held !== null) throw svcError('slot.config_error', heldMessage(held), { details: { slot, file: held.file } })
  }

  /** What its engine was started as; null for a slot without one, and for an engine that an older release started. */
  place (slot: string): PlacedSlot | null {
    return this.#held.get(slot)?.place ?? null
  }

  places (): readonly PlacedSlot[] {
    return [...this.#held.values()].flatMap(({ place }) => place ?? [])
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
