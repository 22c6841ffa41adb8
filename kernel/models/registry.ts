import { readFileSync, statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import {
  modelRowSchema, type Clock, type Logger, type Model, type ModelRegistry, type NewModelRow, type Paths, type RegistryFile,
  type SvcConfig
} from '../contract/index.js'
import { writeFileAtomic, type FileOps } from '../config/files/atomic-file.js'
import { isUnfinished } from '../config/files/journal.js'
import type { WithLock } from '../config/locker.js'
import type { WriteRules } from '../config/write/write-rules.js'
import { storeTemp } from '../config/files/written-folders.js'
import { parseToml, tomlDiagnostic, type Table } from '../config/toml/toml-file.js'
import { parseFailed, writeFailed } from '../config/files/write-errors.js'
import { asTables, describeProblems, isTableForm, readRegistry, requireRow, withRows } from './registry-file.js'
import { engineStoreOf, storeOf } from './store-folder.js'

export interface ModelRegistryOptions {
  readonly paths: Paths
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Logger
  readonly clock: Clock
  readonly withLock: WithLock
  /** `[models]` of svc.toml as it is now. */
  readonly settings: () => SvcConfig['models']
  /** Finishes or takes back a change of several files that could not be ended; this file may be among them. */
  readonly recover?: () => Promise<void>
  readonly ops?: FileOps
  readonly rules?: Pick<WriteRules, 'model'>
}

/** How often, at most, a read looks whether another process wrote the file. */
const LOOK_EVERY_MS = 1000

/**
 * The models of this home. Reads come from memory; at most once a second one of
 * them asks for the file's time and reads it again when another process wrote it. Never rejects for a bad file.
 */
export async function createModelRegistry (options: ModelRegistryOptions): Promise<ModelRegistry> {
  const { paths, env, log, clock, withLock } = options
  let models: ReadonlyMap<string, Model> = new Map()
  let rows: readonly Model[] = []
  /** Rows that cannot be read, or the whole file. */
  let unread: ReadonlySet<string> | 'all' = new Set()
  let stamp = ''
  let lookedAt = -Infinity
  let listeners: readonly { readonly call: () => void }[] = []

  refresh(true)
  const store = (): string => storeOf(env, options.settings(), paths)

  /** Synchronous: readers are. The file is small, and it is read only when it changed. */
  function refresh (now: boolean): void {
    // what cannot be read is looked at by every reader, because it is about to be mended
    const isWhole = unread !== 'all' && unread.size === 0
    if (!now && isWhole && clock.monotonic() - lookedAt < LOOK_EVERY_MS) return
    lookedAt = clock.monotonic()
    const seen = stampOf(paths.registry)
    if (seen === stamp) return
    stamp = seen
    const data = seen === '' ? {} : readParsed()
    if (data === null) unread = 'all'
    else adopt(data)
  }

  /** Null keeps what is known: the next reader tries again once the file changes. */
  function readParsed (): Table | null {
    try {
      const text = readFileSync(paths.registry, 'utf8')
      try {
        return parseToml(text)
      } catch (error) {
        const { message } = tomlDiagnostic(error, text, 'registry.toml')
        log.warn({ file: paths.registry }, `registry.toml ${message}; the models known so far are kept`)
      }
    } catch (error) {
      log.warn({ file: paths.registry, err: error }, 'registry.toml cannot be read; the models known so far are kept')
    }
    return null
  }

  function adopt (data: Table): void {
    const { models: read, problems, unread: bad } = readRegistry(data)
    const couldNot = unread
    unread = bad
    for (const message of describeProblems(problems)) log.warn({ file: paths.registry }, `registry.toml: ${message}; the row is ignored`)
    if (isDeepStrictEqual(read, models) && isDeepStrictEqual(couldNot, bad)) return
    models = new Map([...read].map(([id, model]) => [id, isDeepStrictEqual(models.get(id), model) ? models.get(id)! : model]))
    rows = Object.freeze([...models.values()])
    for (const { call } of listeners) {
      try {
        call()
      } catch (error) {
        log.error({ err: error }, 'a listener of registry changes failed')
      }
    }
  }

  async function write ({ text }: RegistryFile): Promise<void> {
    await writeFileAtomic(paths.registry, text, options.ops === undefined ? {} : { ops: options.ops })
      .catch(error => { throw writeFailed(paths.state, paths.registry, error) })
  }

  /** Read, change, write under the lock; what other processes wrote meanwhile stays. */
  function change (
    edit: (known: ReadonlyMap<string, Model>) => ReadonlyMap<string, NewModelRow | null>, together = write
  ): Promise<void> {
    return withLock(`${paths.registry}.lock`, async () => {
      if (options.recover !== undefined && await isUnfinished(paths)) await options.recover()
      refresh(true)
      const wanted = edit(models)
      // a large file takes a while to parse
      if (wanted.size === 0) return
      for (const [id, row] of wanted) if (row !== null) options.rules?.model(id, row, models.get(id))
      const text = stampOf(paths.registry) === '' ? '' : readFileSync(paths.registry, 'utf8')
      const parsed = parsedOrThrow(text)
      const data = isTableForm(parsed) ? parsed : asTables(parsed)
      const next = withRows(data, wanted)
      if (next === null) return
      const { patchToml } = await import('../config/toml/toml-patch.js')
      const written = patchToml(text, next, reason => {
        log.warn({ file: paths.registry, reason }, 'registry.toml was rewritten; its comments are lost')
      })
      try {
        await together({ text: written })
      } finally {
        refresh(true)
      }
    })
  }

  return {
    list () { refresh(false); return rows },
    get (id) { refresh(false); return models.get(id) },
    isUnread (id) { refresh(false); return !models.has(id) && (unread === 'all' || unread.has(id)) },
    async put (id, row) {
      const fresh = requireRow(id, row)
      await change(() => new Map([[id, row]]))
      return models.get(id) ?? Object.freeze({ id, ...modelRowSchema.parse(fresh) })
    },
    async remove (id) {
      let known = false
      await change(rows => {
        known = rows.has(id)
        return new Map([[id, null]])
      })
      return known
    },
    change,
    onChange (listener) {
      const entry = { call: listener }
      listeners = [...listeners, entry]
      return () => { listeners = listeners.filter(other => other !== entry) }
    },
    get store () { return store() },
    engineStore: provider => engineStoreOf(provider, env, options.settings(), paths),
    writeFile: (path, content, fresh = false) =>
      writeFileAtomic(path, content, { tempFolder: storeTemp(store()), replaceLink: true, exclusive: fresh })
  }
}

function parsedOrThrow (text: string): Table {
  try {
    return parseToml(text)
  } catch (error) {
    throw parseFailed([tomlDiagnostic(error, text, 'registry.toml')])
  }
}

/** Changes whenever the file is replaced; empty when there is none. */
function stampOf (path: string): string {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stats === undefined ? '' : `${stats.ino}-${stats.mtimeNs}-${stats.size}`
  } catch {
    return 'unreadable'
  }
}
