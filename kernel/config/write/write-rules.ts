import type { ConfigRowsDefinition, Model, NamedSlotConfig, NewModelRow, Profile } from '../../contract/index.js'

/**
 * What a row may not say for reasons that no schema knows: the engines are not there yet when configuration is opened.
 * Every writer of such a row passes here, whatever route or tool it came by. Each throws what is wrong.
 */
export interface WriteRules {
  readonly profile: (name: string, profile: Profile) => void
  /** Of a file that a plugin owns. */
  readonly row: (rows: ConfigRowsDefinition, name: string, row: unknown, slots: ReadonlyMap<string, NamedSlotConfig>) => void
  /** `before` is the row that is replaced. */
  readonly model: (id: string, row: NewModelRow, before: Model | undefined) => void
}

/** Allows everything until the engines are known. */
export class LateWriteRules implements WriteRules {
  #rules: WriteRules | null = null

  use (rules: WriteRules): void {
    this.#rules = rules
  }

  profile (name: string, profile: Profile): void { this.#rules?.profile(name, profile) }
  row (rows: ConfigRowsDefinition, name: string, row: unknown, slots: ReadonlyMap<string, NamedSlotConfig>): void {
    this.#rules?.row(rows, name, row, slots)
  }

  model (id: string, row: NewModelRow, before: Model | undefined): void { this.#rules?.model(id, row, before) }
}
