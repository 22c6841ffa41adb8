import { importAliases } from '../aliases/archived.js'
import { configDefaults, configProblem } from '../banks/config.js'
import { traits } from '../banks/profile.js'
import type { Core } from '../core.js'
import { PermanentFailure } from '../operations/operation.js'
import type { Run } from '../operations/operation-queue.js'
import { findBank, overridesOf, type BankRow } from '../store/bank-table.js'
import type { Archive, BankRest, TransferDocument } from './archive.js'
import type { JsonRow } from './checked.js'
import { mapOrNull } from './cells.js'
import { importModels, importRules } from './import-models.js'
import { importRecords } from './import-records.js'
import { Importing, type Imported } from './importing.js'
import { turn } from '../store/turn.js'

/** Which parts of an archive are brought. */
export interface BankParts {
  readonly data: boolean
  readonly config: boolean
}

/** An archive without what is not wanted of it. */
export type Brought = Omit<Archive, 'aliases'> & Pick<BankRest, 'aliases'>

/**
 * What beside memories is in an archive. In the caller's transaction; throws where the bank cannot take it.
 * @returns for the result of the operation
 */
export function importRest (core: Core, bank: BankRow, rest: BankRest, config: boolean): Readonly<Record<string, number>> {
  const models = importModels(core, bank, rest)
  importRecords(core, bank, rest.records ?? [])
  const aliases = rest.aliases === undefined ? {} : importAliases(core, bank, rest.aliases)
  const rules = config ? importRules(core, bank, rest) : { directives_imported: 0, webhooks_imported: 0 }
  return { ...models, ...rules, ...aliases }
}

const FACTS_AT_ONCE = 100

/** Writes documents and observations slice by slice: requests are served between them. Throws the signal's reason there. */
export async function writeSlices (
  core: Core, work: Importing, { documents, observations }: Pick<Archive, 'documents' | 'observations'>,
  run: Pick<Run, 'signal' | 'progress'>
): Promise<void> {
  const slices = [
    ...slicesOf(documents, weightOf).map(slice => () => { for (const document of slice) work.document(document) }),
    ...slicesOf(observations, () => 1).map(slice => () => { for (const observation of slice) work.observation(observation) })
  ]
  for (const [n, write] of slices.entries()) {
    run.signal.throwIfAborted()
    run.progress('importing', n, slices.length)
    core.store.transaction(write)
    await turn()
  }
}

/** What a new bank is filled with. */
export interface Filling {
  /** Undefined for those that any bank has. */
  readonly settings: JsonRow | undefined
  /** Whether directives and webhooks come, too. */
  readonly config: boolean
  /** Writes documents and observations; resolves with what there is besides. */
  readonly write: (work: Importing) => Promise<BankRest>
}

/** An archive, or parts of it. */
export function fillingOf (core: Core, archive: Brought, { data, config }: BankParts, run: Pick<Run, 'signal' | 'progress'>): Filling {
  return {
    settings: config ? archive.rows.banks?.[0] : undefined,
    config,
    write: async work => {
      await writeSlices(core, work, data ? archive : { documents: [], observations: [] }, run)
      return archive
    }
  }
}

/** Fills a new bank that has no name yet; `finish` gives it its name, in the caller's transaction. */
export async function fillBank (
  core: Core, stage: BankRow, { settings, config, write }: Filling
): Promise<{ readonly finish: (bankId: string) => Imported }> {
  const { store } = core
  store.transaction(() => importConfig(core, stage, settings))
  const work = new Importing(core, findBank(store, stage.bank_id)!, false)
  const rest = await write(work)
  return {
    finish: bankId => {
      mustBeNew(core, bankId)
      store.run('UPDATE banks SET bank_id = ?, name = CASE name WHEN ? THEN ? ELSE name END WHERE seq = ?', [bankId, stage.bank_id, bankId, stage.seq])
      const { result, retained } = work.end()
      const others = importRest(core, findBank(store, bankId)!, rest, config)
      return { result: { bank_id: bankId, ...result, ...others }, retained: { ...retained, bankId } }
    }
  }
}

export function mustBeNew ({ store }: Core, bankId: string): void {
  if (findBank(store, bankId) !== undefined) {
    throw new PermanentFailure(`Target bank '${bankId}' already exists; delete it first, or pass another target_bank_id`)
  }
}

/** How much work a document is, in facts. Pure. */
export function weightOf ({ facts, invalidated, events }: TransferDocument): number {
  const all = [...facts, ...invalidated]
  return 1 + all.length + events.length + all.reduce((sum, { changes }) => sum + (changes?.length ?? 0), 0)
}

/** In their order, each about as much work as the others. Pure. */
export function slicesOf<T> (all: readonly T[], weightOf: (each: T) => number): ReadonlyArray<readonly T[]> {
  const slices: T[][] = []
  let room = 0
  for (const each of all) {
    if (room <= 0) {
      slices.push([])
      room = FACTS_AT_ONCE
    }
    slices.at(-1)!.push(each)
    room -= weightOf(each)
  }
  return slices
}

/** Settings, name and character of a bank. In the caller's transaction. */
export function importConfig ({ store, now }: Core, bank: BankRow, row: JsonRow | undefined): void {
  if (row === undefined) return
  const given = settings(row, 'config')
  const config = Object.fromEntries(
    Object.entries(given).filter(([key, value]) => Object.hasOwn(configDefaults, key) && value !== null)
  )
  const disposition = settings(row, 'disposition')
  for (const trait of traits) if (typeof disposition[trait] === 'number') config[`disposition_${trait}`] ??= disposition[trait]
  const problem = configProblem(config)
  if (problem !== null) throw new PermanentFailure(`Invalid transfer archive: banks.json: ${problem}`)
  store.run('UPDATE banks SET name = ?, overrides = ?, updated_at = ? WHERE seq = ?', [
    typeof row.name === 'string' ? row.name : bank.name, JSON.stringify({ ...overridesOf(bank), ...config }), now(), bank.seq
  ])
}

function settings (row: JsonRow, name: string): Readonly<Record<string, unknown>> {
  const given = mapOrNull(row[name] ?? {})
  if (given === null) throw new PermanentFailure(`Invalid transfer archive: banks.json: ${name} must be an object`)
  return given
}
