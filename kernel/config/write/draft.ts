import { relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import {
  nameSchema, profileSchema, svcError, type ConfigDraft, type ConfigFileDefinition, type ConfigRows, type ConfigSnapshot,
  type ExternalProvider, type Logger, type NamedProfile, type NamedSlotConfig, type Paths, type Profile, type ProviderWords,
  type RegistryFile, type SvcConfig, type Upstream
} from '../../contract/index.js'
import { DraftFiles } from './draft-files.js'
import { DraftRows } from './draft-rows.js'
import { DraftToolServers } from './draft-tool-servers.js'
import type { LaidProviders } from '../parts/laid-providers.js'
import { editOwned } from './owned-edit.js'
import { ownedDefinition, rowsOf } from '../load/owned-files.js'
import { configFiles, slotFile } from '../parts/config-parts.js'
import { checkShape, invalid } from '../check/shape-check.js'
import { providerRows, upstreamRows } from '../schema/catalog-files.js'
import { checkSlotFile, foldSlotFile, wordsForReading } from '../schema/slot-file.js'
import { slotWithProvider } from '../snapshot.js'
import { patchedSlot, previewSlot, requireSlotName, slotExists, slotNotFound } from './slot-writer.js'
import { mergeTables } from './svc-writer.js'
import { isTable, type Table } from '../toml/toml-file.js'
import type { FileChange } from '../files/transaction.js'
import type { WriteRules } from './write-rules.js'

type Raw = Readonly<Record<string, unknown>>

/** svc.toml on disk with a patch merged in and checked. */
export type SvcPatcher = (
  patch: Raw, check?: (next: SvcConfig) => void
) => Promise<{ readonly value: SvcConfig, readonly text: string }>

/** A `ConfigDraft` on the files as they are. Made with the configuration lock held. */
export class Draft implements ConfigDraft {
  readonly #patchSvc: SvcPatcher
  #svc: SvcConfig
  readonly upstreams: ConfigRows<Upstream>
  readonly providers: ConfigRows<ExternalProvider>
  readonly toolServers: ConfigDraft['toolServers']
  readonly #files: DraftFiles
  readonly #log: Logger
  readonly #rules: WriteRules | null
  readonly #owned: readonly ConfigFileDefinition[]
  readonly #providers: LaidProviders
  /** Below the state root. */
  readonly #registry: string
  readonly #slots: Map<string, NamedSlotConfig>
  readonly #profiles: Map<string, NamedProfile>
  /** What files of plugins say. */
  readonly #ofFiles: Map<string, unknown>

  constructor (
    snapshot: ConfigSnapshot, paths: Paths, log: Logger, patchSvc: SvcPatcher, providers: LaidProviders,
    rules: WriteRules | null = null, owned: readonly ConfigFileDefinition[] = []
  ) {
    this.#svc = snapshot.svc
    this.#patchSvc = patchSvc
    this.#files = new DraftFiles(paths, log)
    this.#log = log
    this.#rules = rules
    this.#owned = owned
    this.#providers = providers
    this.#registry = relative(paths.state, paths.registry)
    this.upstreams = new DraftRows(this.#files, log, { ...upstreamRows, file: configFiles.upstreams })
    this.providers = new DraftRows(this.#files, log, { ...providerRows, file: configFiles.providers })
    this.toolServers = new DraftToolServers(this.#files, log)
    this.#slots = new Map(snapshot.slots)
    this.#profiles = new Map(snapshot.profiles)
    this.#ofFiles = new Map(snapshot.files)
  }

  get svc (): SvcConfig { return this.#svc }
  get slots (): ReadonlyMap<string, NamedSlotConfig> { return this.#slots }
  get profiles (): ReadonlyMap<string, NamedProfile> { return this.#profiles }
  get files (): ReadonlyMap<string, unknown> { return this.#ofFiles }

  changes (): readonly FileChange[] {
    return this.#files.changes()
  }

  touched (): readonly string[] {
    return this.#files.touched()
  }

  checkSlot (name: string, config: Raw): NamedSlotConfig {
    const { slot } = previewSlot(name, { ...config }, this.#providers)
    if (this.#slots.has(name)) throw slotExists(name)
    return slotWithProvider(slot, this.#providers)
  }

  async createSlot (name: string, config: Raw): Promise<NamedSlotConfig> {
    const { slot: written, raw: { name: _, ...raw } } = previewSlot(name, { ...config }, this.#providers)
    const slot = slotWithProvider(written, this.#providers)
    const { stringifyToml } = await import('../toml/toml-patch.js')
    // the file and not the snapshot: one that is broken is there too
    if (!await this.#files.create(slotFile(name), stringifyToml(raw))) throw slotExists(name)
    this.#slots.set(name, slot)
    return slot
  }

  async patchSlot (name: string, patch: Raw): Promise<NamedSlotConfig> {
    const file = await this.#slotFile(name)
    const { slot: written, text } = await patchedSlot(name, file, { ...patch }, this.#log, this.#providers)
    const slot = slotWithProvider(written, this.#providers)
    this.#files.put(slotFile(name), text)
    this.#slots.set(name, slot)
    return slot
  }

  /** The slot as its file says, else its last good configuration. */
  async slotOnDisk (name: string): Promise<NamedSlotConfig | null> {
    const file = await this.#slotFile(name)
    const { value } = checkSlotFile(name, file.data, 'client', foldSlotFile(file.data, wordsForReading(this.#providers)))
    return value === null ? this.#slots.get(name) ?? null : slotWithProvider(value, this.#providers)
  }

  async deleteSlot (name: string): Promise<void> {
    requireSlotName(name)
    if (!await this.#files.remove(slotFile(name))) throw slotNotFound(name)
    this.#slots.delete(name)
  }

  async putProfile (name: string, profile: Profile | null): Promise<void> {
    if (this.#providers.profiles.has(name)) {
      throw svcError('profiles.seed_immutable', `profile '${name}' is built in and cannot be changed; clone it under another name`, { details: { name } })
    }
    const checked = checkRow('profile', name, profileSchema, without(profile, 'name', 'seed'))
    if (checked !== null) this.#rules?.profile(name, checked)
    await this.#editRow(configFiles.profiles, 'profile', name, checked, profileSchema)
    if (checked === null) this.#profiles.delete(name)
    else this.#profiles.set(name, { ...checked, name, seed: false })
  }

  async putRow (file: string, name: string, row: object | null): Promise<void> {
    const { rows } = ownedDefinition(this.#owned, file)
    if (rows === undefined) throw new TypeError(`'${file}' has no rows; write it with patchFile`)
    const { key, schema, builtin } = rows
    if (builtin?.has(name) === true) {
      throw invalid(`${key} ${name}`, [{ path: ['name'], message: 'is built in and cannot be changed', unknown: false }])
    }
    const checked = checkRow(key, name, schema, row)
    if (checked !== null) this.#rules?.row(rows, name, checked, this.#slots)
    await this.#editRow(file, key, name, checked, schema)
    const others = [...rowsOf(rows, this.#ofFiles.get(file))].filter(([other]) => other !== name)
    this.#ofFiles.set(file, { [key]: Object.fromEntries(checked === null ? others : [...others, [name, checked] as const]) })
  }

  async patchSvc (patch: Raw, check?: (next: SvcConfig) => void): Promise<SvcConfig> {
    const { value, text } = await this.#patchSvc(patch, check)
    const before = await this.#files.toml(configFiles.svc)
    if (text !== (before?.text ?? '')) this.#files.put(configFiles.svc, text)
    return this.#svc = value
  }

  patchFile (file: string, patch: Raw): Promise<unknown> {
    return this.editFile(file, data => mergeTables({ ...data }, { ...patch }))
  }

  async editFile (file: string, edit: (data: Raw, words: ProviderWords) => Raw): Promise<unknown> {
    const definition = ownedDefinition(this.#owned, file)
    const held = this.#ofFiles.get(file)
    const next = await editOwned(this.#files, definition, { held, words: this.#providers, edit })
    this.#ofFiles.set(file, next)
    return next
  }

  putState (file: string, content: string | null): Promise<void> {
    return this.#files.replace('state', file, content)
  }

  putRegistry ({ text }: RegistryFile): Promise<void> {
    return this.#files.replace('state', this.#registry, text)
  }

  putPrivate (file: string, content: string | null): Promise<boolean> {
    return this.#files.putPrivate(file, content)
  }

  async #slotFile (name: string): Promise<{ readonly text: string, readonly data: Table }> {
    requireSlotName(name)
    const file = await this.#files.toml(slotFile(name))
    if (file === null) throw slotNotFound(name)
    return file
  }

  /** Values that stay are left as the user wrote them; those that are their default are not written at all. */
  #editRow (file: string, key: string, name: string, next: object | null, schema: z.ZodObject): Promise<void> {
    return this.#files.editToml(file, data => {
      const tables = isTable(data[key]) ? data[key] : {}
      const { [name]: old, ...others } = tables
      if (next === null) return Object.keys(others).length === 0 ? without(data, key) as Table : { ...data, [key]: others }
      return { ...data, [key]: { ...tables, [name]: mergedRow(isTable(old) ? old : {}, next as Raw, schema) } }
    })
  }
}

function mergedRow (table: Table, next: Raw, schema: z.ZodObject): Table {
  const present = schema.safeParse(table)
  const known: Raw = present.success ? present.data : {}
  const row = present.success ? { ...table } : {}
  for (const [key, value] of Object.entries(next)) {
    if (isDeepStrictEqual(value, Object.hasOwn(row, key) ? known[key] : schema.shape[key]?.safeParse(undefined).data)) continue
    if (value === null) delete row[key]
    else row[key] = withoutNulls(value)
  }
  return row
}

/** Rows of the snapshot carry more than rows of the file. */
function without (row: object | null, ...keys: readonly string[]): object | null {
  return row === null ? null : Object.fromEntries(Object.entries(row).filter(([key]) => !keys.includes(key)))
}

/** TOML has no null: what is null is left out. */
function withoutNulls (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isTable(value)) return value
  const kept = Object.entries(value).filter(([, item]) => item !== null)
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutNulls(item)]))
}

function checkRow<S extends z.ZodType> (what: string, name: string, schema: S, value: unknown): z.output<S> | null {
  const named = checkShape(nameSchema, name, { audience: 'client', userPath: () => ['name'] })
  const checked = value === null ? null : checkShape(schema, value, { audience: 'client', written: true })
  const problems = [...named.problems, ...checked?.problems ?? []]
  if (problems.length > 0) throw invalid(`${what} ${name}`, problems)
  return checked?.value ?? null
}
