import { extname, isAbsolute } from 'node:path'
import { stat } from 'node:fs/promises'
import {
  svcError, type Clock, type ConfigService, type EventBus, type Model, type ModelFiles, type ModelRegistry, type NewModelRow,
  type ProviderCatalog
} from 'svc-gateway/plugin'
import { curatedMedia } from './curated-media.js'
import { curatedText } from './curated-text.js'
import { modelError } from './errors.js'
import { examine } from './examine.js'
import { MissingFiles } from './missing-files.js'
import { distinctPlaces, modelFilesIn } from './model-walk.js'
import type {
  AddOptions, CuratedModel, ModelLibrary, ModelPreview, ModelSuggestion, PreviewOptions, ScanResult, UpdatedModel
} from './ref.js'
import { merged, rowOf } from './row-patch.js'
import { newRows } from './scan-plan.js'
import { suggestionOf } from './suggestion.js'

export interface LibraryServices {
  readonly clock: Clock
  readonly config: ConfigService
  readonly events: EventBus
  readonly models: ModelRegistry
  readonly files: ModelFiles
  readonly providers: ProviderCatalog
}

/** Most files of one scan or preview. */
const MAX_FILES = 20_000
/** A caller waits for a preview; what was not looked at by then is left out, and that is told. */
const PREVIEW_MS = 5_000

export class Library implements ModelLibrary {
  readonly curated: readonly CuratedModel[] = [...curatedText, ...curatedMedia]
  readonly #services: LibraryServices
  readonly #stopping = new AbortController()
  readonly #missing: MissingFiles
  #scanning: Promise<ScanResult> | null = null

  constructor (services: LibraryServices) {
    this.#services = services
    this.#missing = new MissingFiles(services.clock, services.models)
  }

  get roots (): readonly string[] {
    const { config, models } = this.#services
    return [...new Set([...config.snapshot.svc.models.roots, models.store])]
  }

  async describe (path: string, signal: AbortSignal): Promise<ModelSuggestion> {
    if (!isAbsolute(path)) throw modelError('model.path_relative', 'the path of a model must be absolute', { param: 'path' })
    const stats = await stat(path).catch(() => null)
    if (stats === null) throw svcError('model.path_missing', `${path} does not exist; is its disk mounted?`, { param: 'path', details: { path } })
    const extensions = this.#extensions()
    if (!stats.isFile() || !extensions.includes(extname(path).toLowerCase())) {
      throw modelError('model.unsupported_format', `${path} is not a model file: ${extensions.join(' and ')} are; name the file itself, or see [models] file_extensions`,
        { param: 'path', details: { path, extensions } })
    }
    return await this.#suggest(path, signal)
  }

  async preview (paths: readonly string[], options: PreviewOptions): Promise<ModelPreview> {
    const { clock } = this.#services
    const end = clock.monotonic() + PREVIEW_MS
    const isOver = (): boolean => clock.monotonic() > end
    const found = new Set<string>()
    for (const path of await distinctPlaces(paths, options.recursive)) {
      for (const file of await modelFilesIn(path, { ...options, extensions: this.#extensions(), isOver })) found.add(file)
    }
    const suggestions: ModelSuggestion[] = []
    for (const path of [...found].slice(0, MAX_FILES)) {
      if (isOver()) break
      suggestions.push(await this.#suggest(path, options.signal))
    }
    return { suggestions, truncated: isOver() || suggestions.length < found.size }
  }

  missing (): Promise<ReadonlySet<string>> { return this.#missing.ids() }

  scan (): Promise<ScanResult> {
    return this.#scanning ??= this.#scan(this.#stopping.signal).finally(() => { this.#scanning = null })
  }

  /** Ends a scan that runs. */
  async close (): Promise<void> {
    this.#stopping.abort(svcError('gateway.stopping', 'the gateway is shutting down'))
    await this.#scanning?.catch(() => undefined)
  }

  async add (path: string, { source, signal, overwrite, ...given }: AddOptions): Promise<Model> {
    const { id, row, problem } = await this.describe(path, signal)
    if (problem !== null) throw svcError('model.file_invalid', `${path} is not registered: ${problem}`, { param: 'path', details: { path, reason: problem } })
    return await this.register(given.id ?? id, {
      ...row,
      ...(given.name === undefined ? {} : { name: given.name }),
      ...(given.capabilities === undefined || given.capabilities.length === 0 ? {} : { capabilities: [...given.capabilities] })
    }, { source, overwrite: overwrite === true })
  }

  async register (
    id: string, row: NewModelRow, { source, overwrite = false }: { readonly source: string, readonly overwrite?: boolean }
  ): Promise<Model> {
    const { models } = this.#services
    await models.change(known => {
      if (known.has(id) && !overwrite) {
        throw modelError('model.already_exists', `a model with the id '${id}' is registered already; choose another id, or change it with PUT`,
          { param: 'id', details: { id, path: known.get(id)!.path } })
      }
      return new Map([[id, this.#stamped(row, source)]])
    })
    const model = models.get(id)!
    this.#tellRegistered(model, source)
    return model
  }

  async update (id: string, patch: Readonly<Record<string, unknown>>): Promise<UpdatedModel> {
    const { models, events } = this.#services
    let changed: readonly string[] = []
    await models.change(known => {
      const before = known.get(id)
      if (before === undefined) throw unknownModel(id)
      const next = merged(before, patch)
      changed = next.changed
      return changed.length === 0 ? new Map() : new Map([[id, next.row]])
    })
    const model = models.get(id)
    if (model === undefined) throw unknownModel(id)
    if (changed.length > 0) {
      events.emit({ type: 'model.updated', source: `model:${id}`, message: `model ${id}: ${changed.join(', ')} changed`, data: { id, changed_fields: changed } })
    }
    return { model, changed }
  }

  #extensions (): readonly string[] {
    return this.#services.config.snapshot.svc.models.file_extensions.map(extension => extension.toLowerCase())
  }

  async #suggest (path: string, signal: AbortSignal): Promise<ModelSuggestion> {
    const { files, providers } = this.#services
    return suggestionOf(await examine(files, path, signal), providers.list())
  }

  /** Reads only what is not known, registers all of it with one write. */
  async #scan (signal: AbortSignal): Promise<ScanResult> {
    const { models } = this.#services
    const roots = this.roots
    const skipped: Array<{ path: string, reason: string }> = []
    const fresh: ModelSuggestion[] = []
    const seen = new Set<string>()
    const registered = new Set(models.list().map(model => model.path))
    for (const root of roots) {
      for (const path of await modelFilesIn(root, { extensions: this.#extensions(), recursive: true, signal })) {
        if (seen.has(path) || seen.size >= MAX_FILES) continue
        seen.add(path)
        if (registered.has(path)) skipped.push({ path, reason: 'already_registered' })
        else fresh.push(await this.#suggest(path, signal))
      }
    }
    let added: readonly string[] = []
    await models.change(known => {
      const plan = newRows(fresh, known)
      skipped.push(...plan.skipped)
      added = [...plan.rows.keys()]
      return new Map([...plan.rows].map(([id, row]) => [id, this.#stamped(row, 'scan')]))
    })
    for (const id of added) {
      const model = models.get(id)
      if (model !== undefined) this.#tellRegistered(model, 'scan')
    }
    return { added, skipped, scanned_roots: roots }
  }

  /** `added_at` in epoch seconds: when the model came here. */
  #stamped (row: NewModelRow, source: string): NewModelRow {
    return rowOf({ ...row, metadata: { ...row.metadata, source, added_at: Math.floor(this.#services.clock.now() / 1000) } })
  }

  #tellRegistered ({ id, backends, capabilities }: Model, source: string): void {
    this.#services.events.emit({
      type: 'model.registered', source: `model:${id}`, message: `model ${id} is registered`, data: { id, backends, capabilities, source }
    })
  }
}

function unknownModel (id: string): Error {
  return svcError('model.not_found', `no such model: '${id}'; GET /api/models lists all models`, { details: { model: id } })
}
