import type { PluginTable } from 'svc-gateway/plugin'
import { z } from 'zod'
import { programForms } from './ref.js'

const keptSchema = z.object({
  /** It starts with the gateway. */
  enabled: z.boolean(),
  /** The gateway was set as it wishes: done once, since the operator may have undone it. */
  prepared: z.boolean(),
  form: z.enum(programForms).nullable(),
  version: z.string().nullable(),
  /** Folder of its environment. */
  environment: z.string().nullable()
})
export type Kept = z.output<typeof keptSchema>

const NOTHING: Kept = { enabled: false, prepared: false, form: null, version: null, environment: null }

/** What is remembered of services that the gateway runs itself. */
export class KeptServices {
  readonly #table: PluginTable

  constructor (table: PluginTable) {
    this.#table = table
  }

  get (id: string): Kept {
    const kept = keptSchema.safeParse(this.#table.get(id))
    return kept.success ? kept.data : NOTHING
  }

  change (id: string, change: Partial<Kept>): void {
    this.#table.set(id, { ...this.get(id), ...change })
  }

  /** Whether services are to be announced while the gateway runs. */
  get announces (): boolean { return this.#table.get('.announces') === true }
  set announces (value: boolean) { this.#table.set('.announces', value) }

  forget (id: string): void {
    this.#table.delete(id)
  }
}
