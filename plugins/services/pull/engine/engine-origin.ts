import {
  isSvcError, type Clock, type EngineProvider, type EngineTasks, type Logger, type ModelRegistry, type ProviderCatalog
} from 'svc-gateway/plugin'
import type { EngineRecord } from './engine-record.js'
import { EngineWork, taskOf, type FetchingProvider } from './engine-work.js'
import { modelError } from '../errors.js'
import type { PullOrigin, PullWork } from '../pull-work.js'
import type { PullRequest } from '../ref.js'

export interface EngineOriginDeps {
  readonly clock: Clock
  readonly log: Logger
  readonly models: ModelRegistry
  readonly providers: ProviderCatalog
  readonly tasks: EngineTasks
}

/** Engines with models of their own: their own programs fetch them. */
export class EngineOrigin implements PullOrigin<EngineRecord> {
  readonly #deps: EngineOriginDeps

  constructor (deps: EngineOriginDeps) {
    this.#deps = deps
  }

  /** An engine's spelling of an id, for one that fetches such models; null when no engine does. */
  tagOf (id: string): string | null {
    return this.#engineOf(id)?.tag ?? null
  }

  async plan ({ model_id: id }: PullRequest): Promise<EngineRecord> {
    const { models, tasks } = this.#deps
    const found = this.#engineOf(id)
    if (found === null) throw away(id)
    const { provider, tag } = found
    const store = models.engineStore(provider)
    await tasks.check(taskOf(provider, { id: tag, store })).catch((error: unknown) => { throw refused(provider, tag, error) })
    const entry = (await provider.models.list(store)).find(model => model.id === tag)
    const size = entry?.sizeBytes ?? 0
    const source = provider.models.source ?? provider.name
    const bytes = entry?.installed === true ? size : 0
    return { engine: provider.name, source, tag, store, folder: null, size, files: [], errorCode: null, bytes }
  }

  work (_modelId: string, record: EngineRecord): Promise<PullWork> {
    return Promise.resolve(new EngineWork({ ...this.#deps, provider: () => this.#named(record) }, record))
  }

  #engineOf (id: string): { readonly provider: FetchingProvider, readonly tag: string } | null {
    for (const provider of this.#deps.providers.list()) {
      const tag = provider.models?.canonical(id) ?? null
      if (tag !== null && isFetching(provider)) return { provider, tag }
    }
    return null
  }

  #named ({ engine, tag }: EngineRecord): FetchingProvider {
    const provider = this.#deps.providers.get(engine)
    if (provider !== undefined && isFetching(provider)) return provider
    throw away(tag)
  }
}

function isFetching (provider: EngineProvider): provider is FetchingProvider {
  return provider.models?.fetch !== undefined
}

/** A host without the device is no fault of any engine: the model is simply not for it. */
function refused ({ title }: EngineProvider, tag: string, error: unknown): unknown {
  if (!isSvcError(error) || error.code !== 'slot.load_failed') return error
  return modelError('model.invalid_source', `'${tag}' is a model for ${title}, which cannot run here: ${error.message}`, {
    param: 'id', details: { ...error.details, model: tag }, cause: error
  })
}

/** Its plugin was there when the pull was asked for. */
function away (id: string): Error {
  return modelError('model.invalid_source', `no available engine fetches '${id}'; GET /api/plugins shows which plugins are not active`, { details: { model: id } })
}
