import { messageOf, type EventBus, type Logger } from '../../contract/index.js'
import { fail, nameOf, type PluginRecord } from '../record/record.js'
import { placeOf } from './failure-text.js'
import type { Frame } from './loop-watch.js'
import { blamedByStack, placeAmong } from './plugin-scope.js'

export interface CulpritsDeps {
  readonly log: Logger
  readonly events: EventBus
  /** The plugins that there are. */
  readonly records: () => readonly PluginRecord[]
  /** Those that went through the steps of a boot last, whether or not they came to stay. */
  readonly booting: () => readonly PluginRecord[]
}

/** Lays failures that nothing caught, and a blocked event loop, at the door of the plugin that they come from. */
export class Culprits {
  readonly #deps: CulpritsDeps

  constructor (deps: CulpritsDeps) {
    this.#deps = deps
  }

  /** The event loop stood still here. */
  tellBlocked (frames: readonly Frame[]): void {
    const blocked = placeAmong(frames, this.#roots())
    if (blocked === null) return
    const { plugin, place } = blocked
    const message = `plugin ${plugin} blocked the gateway for more than a second, at ${place}; take long work out of the event loop`
    this.#deps.log.error({ plugin, place }, message)
    this.#deps.events.emit({ type: 'plugin.blocked', severity: 'error', source: `plugin:${plugin}`, message, data: { plugin, place } })
  }

  #roots (): ReadonlyMap<string, string> {
    const records = new Set([...this.#deps.records(), ...this.#deps.booting()])
    return new Map([...records].flatMap(record => {
      const root = record.candidate.root()
      return root === null ? [] : [[nameOf(record), root] as const]
    }))
  }

  /** Whose code an error comes from, by its stack. */
  ownerOf (error: unknown): string | null {
    return blamedByStack(error, this.#roots())
  }

  /** A plugin's own asynchronous work failed unhandled. During the boot it falls for that. */
  blame (name: string, error: unknown): void {
    const isIt = (record: PluginRecord): boolean => record.name === name || nameOf(record) === name
    const record = this.#deps.records().find(isIt) ?? this.#deps.booting().find(isIt)
    const root = record?.candidate.root() ?? null
    const place = error instanceof Error && root !== null ? placeOf(error, root) : null
    const message = `background work failed: ${place === null ? '' : `${place}: `}${messageOf(error)}`
    const plugin = record === undefined ? name : nameOf(record)
    this.#deps.log.error({ plugin, err: error }, message)
    if (record !== undefined) record.late = { count: record.late.count + 1, last: message }
    if (record?.state === 'booting') fail(record, record.phase, 'plugin.background_failure', message)
    this.#deps.events.emit({
      type: 'plugin.background_failure', severity: 'error', source: `plugin:${plugin}`, message, data: { plugin }
    })
  }
}
