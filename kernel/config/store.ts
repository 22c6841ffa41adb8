import { isDeepStrictEqual } from 'node:util'
import {
  messageOf, NAME_PATTERN, svcSchemaWith, type Clock, type ConfigFileDefinition, type ConfigService, type ConfigSnapshot,
  type Diagnostic, type Logger, type Paths, type SettingsTable
} from '../contract/index.js'
import type { FileOps } from './files/atomic-file.js'
import { Draft, type SvcPatcher } from './write/draft.js'
import { loadPart, loadTable } from './load/config-table.js'
import { loadParts, loadSecrets, loadSvc, type LoadOptions } from './load/load-parts.js'
import { loadOwned } from './load/owned-files.js'
import { loadSlot } from './load/load-slots.js'
import { loadToolServer } from './load/load-tool-servers.js'
import { noProviders, type LaidProviders } from './parts/laid-providers.js'
import { tableProblems } from './check/table-problems.js'
import { configLock, type WithLock } from './locker.js'
import type { ConfigMigration } from './migrations/index.js'
import { newModelStore, requireModelStore } from './check/model-store-check.js'
import { configFiles, type ConfigParts } from './parts/config-parts.js'
import { poolProblem } from './check/port-pool.js'
import { invalid } from './check/shape-check.js'
import { recoverHome } from './files/recover-home.js'
import { writeSecret } from './write/secrets-writer.js'
import { secretCleaner } from './load/secret-text.js'
import { SerialQueue } from '../async/serial-queue.js'
import { previewSlot, readSlotRaw, slotExists } from './write/slot-writer.js'
import type { WriterContext } from './files/writer-context.js'
import { slotWithProvider, snapshotOf } from './snapshot.js'
import { refuseStart } from './check/start-check.js'
import { patchedSvc } from './write/svc-writer.js'
import { commitFiles, recoverFiles } from './files/transaction.js'
import type { WriteRules } from './write/write-rules.js'
import { problemText } from '../contract/text/problem-text.js'

export interface ConfigServiceOptions {
  readonly paths: Paths
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Logger
  readonly clock: Clock
  readonly withLock: WithLock
  /** Of svc.toml, besides the gateway's own. */
  readonly tables: readonly SettingsTable[]
  /** The providers whose facts files are read with until `use`. Default: none. */
  readonly providers?: LaidProviders
  /** The same of files that plugins own. Default: none. */
  readonly owned?: readonly ConfigFileDefinition[]
  readonly migrations?: readonly ConfigMigration[]
  readonly ops?: FileOps
  readonly rules?: WriteRules
}

/** The configuration as the kernel sees it. */
export interface KernelConfig extends ConfigService {
  readonly providers: LaidProviders
  readonly owned: readonly ConfigFileDefinition[]
  /**
   * Lays the facts of these providers under the files: at once, but for problems of files that only they tell of, and for
   * the files that plugins own, which are found when it resolves.
   */
  use (providers: LaidProviders, files?: readonly ConfigFileDefinition[]): Promise<void>
}

interface Listener { readonly call: (next: ConfigSnapshot, previous: ConfigSnapshot) => void }

/**
 * Reads everything under the configuration root and keeps it (rules in README.md of this folder). Rejects
 * only when svc.toml is broken: with `config.parse_error` or `validation.invalid` that list all problems of all files.
 */
export async function createConfigService (options: ConfigServiceOptions): Promise<KernelConfig> {
  const { paths, env, log, withLock, migrations, tables } = options
  const schema = svcSchemaWith(tables)
  let providers = options.providers ?? noProviders
  let owned = options.owned ?? []
  const load = (): LoadOptions => ({
    paths, schema, providers, owned, ...(migrations === undefined ? {} : { migrations })
  })
  const writer: WriterContext = { paths, log, ...(options.ops === undefined ? {} : { ops: options.ops }) }
  const queue = new SerialQueue()
  let listeners: readonly Listener[] = []
  let cleaner: { readonly of: ReadonlyMap<string, string>, readonly clean: (text: string) => string } | null = null

  await recoverHome(writer, work => withLock(configLock(paths), work), options.clock.now())
  let parts = await loadParts(load(), null)
  refuseStart(parts)
  let snapshot = snapshotOf(parts, providers, null)
  report(snapshot.diagnostics, [])

  function report (now: readonly Diagnostic[], before: readonly Diagnostic[]): void {
    for (const diagnostic of now) {
      if (before.some(old => isDeepStrictEqual(old, diagnostic))) continue
      const { file, path, line, message } = diagnostic
      log.warn({ file, path, line }, `${file}: ${problemText(path, message)}`)
    }
  }

  function adopt (next: ConfigParts): void {
    const previous = snapshot
    parts = next
    snapshot = snapshotOf(parts, providers, previous)
    if (snapshot === previous) return
    report(snapshot.diagnostics, previous.diagnostics)
    for (const { call } of listeners) {
      try {
        call(snapshot, previous)
      } catch (error) {
        log.error({ err: error }, `a listener of configuration changes failed: ${messageOf(error)}`)
      }
    }
  }

  /** All slots, these as their files say now. */
  const withReadAgain = async (names: readonly string[]): Promise<ConfigParts['slots']> => {
    if (names.length === 0) return parts.slots
    const slots = new Map(parts.slots)
    for (const name of names) {
      const part = await loadSlot(paths, name, parts.slots.get(name)?.value ?? null, providers)
      if (part === null) slots.delete(name)
      else slots.set(name, part)
    }
    return new Map([...slots].sort(([a], [b]) => a < b ? -1 : 1))
  }

  /** Reads these files again and no others, so that half-done edits of other files stay out until a reload. */
  const refresh = (files: readonly string[]): Promise<void> => queue.run(async () => {
    const slots = await withReadAgain(files.flatMap(file => /^slots\/(.+)\.toml$/.exec(file)?.[1] ?? []))
    const toolServers = new Map(parts.toolServers)
    for (const file of files) {
      const id = /^mcp-servers\/(.+)\.toml$/.exec(file)?.[1]
      if (id === undefined) continue
      const part = await loadToolServer(paths, id, parts.toolServers.get(id)?.value ?? null)
      if (part === null) toolServers.delete(id)
      else toolServers.set(id, part)
    }
    adopt({
      ...parts,
      toolServers: new Map([...toolServers].sort(([a], [b]) => a < b ? -1 : 1)),
      slots,
      ...files.includes(configFiles.svc) ? { svc: await loadSvc(load(), parts.svc.value) } : {},
      ...await loadTable(paths, parts, providers, files),
      owned: await loadOwned(paths, owned, parts, providers, files)
    })
  })

  const patchSvc: SvcPatcher = (patch, check) => patchedSvc({ ...writer, schema }, patch, migrations, async next => {
    const store = newModelStore(next.models, parts.svc.value?.models ?? null)
    if (store !== null) await requireModelStore(store)
    const pool = poolProblem(next.slots, parts.svc.value?.slots ?? null, providers)
    const problems = [...tableProblems(tables, patch, next, parts.svc.value, snapshot.slots), ...pool === null ? [] : [pool]]
    if (problems.length > 0) throw invalid('settings', problems)
    check?.(next)
  })

  /** The snapshot has the change before the lock is free: the next draft sees it. */
  const change = <T>(work: (draft: Draft) => Promise<T>, dryRun = false): Promise<T> => withLock(configLock(paths), async () => {
    await recoverFiles(writer)
    const draft = new Draft(snapshot, paths, log, patchSvc, providers, options.rules, owned)
    const result = await work(draft)
    if (dryRun) return result
    await commitFiles(writer, draft.changes())
    await refresh(draft.touched())
    return result
  })

  const changeSecret = (name: string, value: string | null): Promise<void> => withLock(configLock(paths), async () => {
    await writeSecret(writer, name, value)
    await queue.run(async () => adopt({ ...parts, secrets: await loadSecrets(paths, parts) }))
  })

  return {
    get snapshot () { return snapshot },
    get providers () { return providers },
    get owned () { return owned },
    paths,
    schema,
    async use (next, files = []) {
      const isSame = isDeepStrictEqual([...providers.profiles.keys()], [...next.profiles.keys()])
      const isWorded = isDeepStrictEqual(providers.deviceWords, next.deviceWords)
      const isNamed = isWorded && isDeepStrictEqual(providers.aliases, next.aliases)
      const formatted = files.filter(({ format }) => format !== undefined).map(({ file }) => file)
      const isOwned = files.length === owned.length && files.every((definition, i) => definition === owned[i])
      providers = next
      owned = files
      adopt(parts)
      const worded = isWorded ? [] : [...parts.slots].filter(([, part]) => part.hasForeignWord === true)
      if (isSame && isOwned && isNamed) return
      await queue.run(async () => adopt({
        ...parts,
        ...worded.length === 0 ? {} : { slots: await withReadAgain(worded.map(([name]) => name)) },
        ...isSame ? {} : await loadPart('profiles', paths, parts, providers),
        ...isOwned && isNamed ? {} : { owned: await loadOwned(paths, owned, parts, providers, isNamed ? [] : formatted) }
      }))
    },
    reload: () => queue.run(async () => {
      adopt(await loadParts(load(), parts))
      return snapshot
    }),
    onChange (listener) {
      const entry = { call: listener }
      listeners = [...listeners, entry]
      return () => { listeners = listeners.filter(other => other !== entry) }
    },
    checkSlot (name, config) {
      const { slot } = previewSlot(name, config, providers)
      if (parts.slots.has(name)) throw slotExists(name)
      return slotWithProvider(slot, providers)
    },
    readSlotFile: async name => NAME_PATTERN.test(name) ? (await readSlotRaw(paths, name))?.data ?? null : null,
    async createSlot (name, config, check = () => {}) {
      const created = await change(async draft => {
        const slot = await draft.createSlot(name, config)
        check(slot)
        return slot
      })
      return snapshot.slots.get(name) ?? created
    },
    async patchSlot (name, patch, check = () => {}) {
      const patched = await change(async draft => {
        const previous = await draft.slotOnDisk(name)
        const slot = await draft.patchSlot(name, patch)
        check(slot, previous ?? slot)
        return slot
      })
      return snapshot.slots.get(name) ?? patched
    },
    deleteSlot: name => change(draft => draft.deleteSlot(name)),
    change: (work, options = {}) => change(work, options.dryRun),
    patchSvc: (patch, check) => change(draft => draft.patchSvc(patch, check)),
    requireModelStore,
    secret: name => parts.secrets.value.get(name) ?? env[name],
    withoutSecrets (text) {
      const secrets = parts.secrets.value
      if (cleaner?.of !== secrets) cleaner = { of: secrets, clean: secretCleaner(secrets.values()) }
      return cleaner.clean(text)
    },
    secretNames: () => [...parts.secrets.value.keys()].sort(),
    setSecret: (name, value) => changeSecret(name, value),
    async deleteSecret (name) {
      const had = parts.secrets.value.has(name)
      await changeSecret(name, null)
      return had
    }
  }
}
