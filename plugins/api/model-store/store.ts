import { isAbsolute, join, normalize } from 'node:path'
import {
  isSvcError, svcError, type ConfigService, type EventBus, type JobStore, type ModelRegistry, type NewModelRow, type SvcConfig
} from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { ModelLibrary } from '../../services/library/ref.js'
import { modelsError } from './errors.js'
import { folderState, suggestStores } from './folder-state.js'
import { copyStore, planMigration, removeSource, type CopyProgress } from './migration.js'
import type { Migration, SectionSchemas, storeSchema } from './schemas.js'
import { isWithin, movedPath, movedPaths } from './tree.js'

export interface StoreServices {
  readonly config: ConfigService
  readonly events: EventBus
  readonly jobs: JobStore
  readonly library: ModelLibrary
  readonly models: ModelRegistry
}

type Changed = z.output<SectionSchemas['changed']>

const PROGRESS_MS = 1000

/** Where models live, and moving them. One change at a time. */
export class ModelStore {
  readonly #services: StoreServices
  readonly #stopped = new AbortController()
  #moving: Promise<unknown> | null = null

  constructor (services: StoreServices) {
    this.#services = services
  }

  async read (): Promise<z.output<typeof storeSchema>> {
    const { config, models } = this.#services
    const { store, pull_root: legacy } = config.snapshot.svc.models
    const [state, suggestions] = await Promise.all([folderState(models.store), suggestStores(models.store)])
    return {
      store,
      effective: models.store,
      fallback_active: models.store !== store,
      pull_root_legacy: legacy ?? null,
      current_state: state,
      suggestions
    }
  }

  /**
   * Makes a folder the store. What is in the present one is moved with `migrate` and left with `keep`; without either, and
   * with something there, nothing is done and the plan of a move is told. Throws `config.invalid` and `models.store_*`.
   */
  async change (given: string, { migrate, keep }: { readonly migrate: boolean, readonly keep: boolean }): Promise<Changed> {
    const path = this.#checkedPath(given)
    await this.#services.config.requireModelStore(path)
    const state = await folderState(path)
    const plan = await planMigration(this.#services.models.store, path)
    if (plan.source === path || plan.files_count === 0 || keep) return await this.#adopt(path, null)
    if (!migrate) return { status: 'needs_migration', plan, state }
    return await this.#exclusively(async () => {
      const files = await copyStore(plan, this.#stopped.signal, this.#teller(plan.source))
      // from here on the copies are the models; the files in the old place are what is too many
      await this.#moveRows(plan.source, path)
      return await this.#adopt(path, await removeSource(plan, files))
    })
  }

  async close (): Promise<void> {
    this.#stopped.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await this.#moving?.catch(() => undefined)
  }

  async #adopt (path: string, migration: Migration | null): Promise<Changed> {
    const { config, library } = this.#services
    await this.#writeSetting(path)
    const { added, skipped, scanned_roots: roots } = await library.scan()
    return {
      status: 'ok',
      config: config.snapshot.svc.models,
      state: await folderState(path),
      migration,
      scan: { added: [...added], skipped: [...skipped], scanned_roots: [...roots] }
    }
  }

  async #exclusively<T> (work: () => Promise<T>): Promise<T> {
    const { jobs } = this.#services
    if (this.#moving !== null) throw modelsError('models.store_migration_failed', 'the models are already being moved; see the events store.progress')
    const pulls = jobs.list({ kind: 'model-pull', unfinished: true, limit: 1 })
    if (pulls.length > 0) {
      throw modelsError('models.store_migration_failed', `a download into the current store is running (${pulls[0]!.target}); cancel it or wait for it`)
    }
    const moving = work()
    this.#moving = moving
    try {
      return await moving
    } finally {
      this.#moving = null
    }
  }

  /** Rows of files that moved, and the setting with them: one change. Without such a row the setting follows alone. */
  async #moveRows (source: string, target: string): Promise<void> {
    await this.#services.models.change(models => {
      const moved = new Map<string, NewModelRow>()
      for (const [name, { id: _id, ...row }] of models) {
        const path = movedPath(row.path, source, target)
        const mmproj = typeof row.mmproj === 'string' ? movedPath(row.mmproj, source, target) : row.mmproj
        const metadata = movedPaths(row.metadata, source, target) as typeof row.metadata
        if (path !== row.path || mmproj !== row.mmproj) moved.set(name, { ...row, path, mmproj, metadata })
      }
      return moved
    }, file => this.#services.config.change(async draft => {
      await draft.putRegistry(file)
      await draft.patchSvc(settingOf(target))
    })).catch(asInvalid)
  }

  async #writeSetting (path: string): Promise<SvcConfig> {
    const { config } = this.#services
    return await config.patchSvc(settingOf(path)).catch(asInvalid)
  }

  #checkedPath (given: string): string {
    const { config, models } = this.#services
    const path = isAbsolute(given) ? normalize(given).replace(/(.)\/+$/, '$1') : ''
    if (path === '') throw invalidPath('must be an absolute path')
    const { paths } = config
    if (paths.models !== join(paths.state, 'models')) {
      throw invalidPath(`is ignored while SVC_MODEL_STORE is set (${paths.models}); unset it and start the gateway again`)
    }
    if (path !== models.store && (isWithin(path, models.store) || isWithin(models.store, path))) {
      throw invalidPath(`must not be inside the current store ${models.store}, nor contain it`)
    }
    return path
  }

  /** One event a second, and one at the end. */
  #teller (source: string): (at: CopyProgress) => void {
    let told = -Infinity
    return at => {
      if (performance.now() - told < PROGRESS_MS && at.files < at.totalFiles) return
      told = performance.now()
      this.#services.events.emit({
        type: 'store.progress',
        source: 'system',
        message: `moving models from ${source}: ${at.files} of ${at.totalFiles} files`,
        data: { source, files: at.files, total_files: at.totalFiles, bytes: at.bytes, total_bytes: at.totalBytes }
      })
    }
  }
}

function settingOf (path: string): { readonly models: Readonly<Record<string, unknown>> } {
  return { models: { store: path, pull_root: null } }
}

function invalidPath (message: string): Error {
  return svcError('config.invalid', `path ${message}`, { details: { fields: [{ path: 'path', message }] }, param: 'path' })
}

export function asInvalid (error: unknown): never {
  if (!isSvcError(error) || !error.code.startsWith('validation.')) throw error
  const { message, details, param } = error
  throw svcError('config.invalid', message, { details, cause: error, ...(param === null ? {} : { param }) })
}
