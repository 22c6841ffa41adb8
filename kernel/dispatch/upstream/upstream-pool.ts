import { isDeepStrictEqual } from 'node:util'
import type { Dispatcher } from 'undici'
import { abortable, linkedAbort, pause } from '../../async/waiting.js'
import type {
  Clock, ConfigService, ConfigSnapshot, EventBus, Logger, Upstream, UpstreamReading, UpstreamView
} from '../../contract/index.js'
import { askInTurn } from './list-round.js'
import { isListed } from './model-filters.js'
import { fetchModels, type ListAnswer } from './upstream-list.js'
import { readUpstream, type UpstreamQuestion } from './upstream-question.js'
import type { UpstreamRoute, UpstreamRow } from './upstream-row.js'
import { upstreamsOf } from './upstream-rows.js'
import { waysLeft, type UpstreamWay } from './upstream-ways.js'

export interface KnownList {
  readonly ids: readonly string[]
  readonly rows: readonly UpstreamRow[]
  /** Epoch milliseconds of the last good list; null before the first. */
  readonly refreshedAt: number | null
  /** When the list was last asked for, monotonic; decides when to ask again. */
  readonly triedAt: number
  readonly error: string | null
}

export interface UpstreamPoolDeps {
  readonly config: ConfigService
  readonly clock: Clock
  readonly events: EventBus
  readonly log: Logger
  readonly dispatcher: (origin: string, connectTimeoutMs?: number) => Dispatcher
  /** Names this gateway among those that a question comes through. */
  readonly token: string
  /** Called when a model list changed. */
  readonly changed: () => void
  /** Called when a name stands for another upstream, or for none. */
  readonly replaced: (name: string) => void
  /** Called for each way that leads to no upstream any more. */
  readonly left: (way: UpstreamWay) => void
}

/**
 * Which lists to fetch: `untried` those that were never asked for, `empty` also those that could not be had and
 * may be tried again, `old` also those that were had long ago.
 */
export type Due = 'untried' | 'empty' | 'old'

const RETRY_AFTER_ERROR_MS = 15_000

/** The remote upstreams: who they are, and which models they said they have. One fetch at a time per upstream. */
export class UpstreamPool {
  readonly #deps: UpstreamPoolDeps
  readonly #cache = new Map<string, KnownList>()
  readonly #running = new Map<string, Promise<ListAnswer>>()
  readonly #stopped = new AbortController()
  readonly #listeners = new Set<{ readonly call: () => void }>()
  #known: { readonly of: ConfigSnapshot, readonly upstreams: ReadonlyMap<string, Upstream> } | null = null

  constructor (deps: UpstreamPoolDeps) {
    this.#deps = deps
  }

  all (): readonly Upstream[] {
    return [...this.#upstreams.values()]
  }

  get (name: string): Upstream | undefined {
    return this.#upstreams.get(name)
  }

  list (name: string): KnownList | undefined {
    return this.#cache.get(name)
  }

  /** What it said it has, and what its filters name: some models are in no list, and a list may not be there. */
  models ({ name, model_filters: filters }: Upstream): readonly string[] {
    const ids = this.#cache.get(name)?.ids ?? []
    const named = (filters?.models ?? []).filter(id => !ids.includes(id))
    return named.length === 0 ? ids : [...ids, ...named]
  }

  views (): UpstreamView[] {
    return this.all().map(upstream => {
      const { name, kind, url, svc, enabled } = upstream
      const cached = this.#cache.get(name)
      const refreshedAt = cached?.refreshedAt == null ? null : new Date(cached.refreshedAt).toISOString()
      return {
        name, kind, url, svc, enabled, models: this.models(upstream), refreshed_at: refreshedAt, error: cached?.error ?? null
      }
    })
  }

  /** Every model that can be asked for: by raw id, the first upstream that has it, and by `<upstream>/<id>`. */
  routes (): Map<string, UpstreamRoute> {
    const routes = new Map<string, UpstreamRoute>()
    for (const upstream of this.#upstreams.values()) {
      if (!upstream.enabled) continue
      for (const modelId of this.models(upstream)) {
        const route = { upstream: upstream.name, modelId }
        if (!routes.has(modelId)) routes.set(modelId, route)
        routes.set(`${upstream.name}/${modelId}`, route)
      }
    }
    return routes
  }

  /** Those that are on and may know more names than they told: without a list so far, or gateways, which list what runs. */
  unlisted (): ReadonlySet<string> {
    const without = this.all().filter(({ enabled, svc, name }) => enabled && (svc || this.#cache.get(name)?.refreshedAt == null))
    return new Set(without.map(({ name }) => name))
  }

  /** What is known of those that are off. */
  switchedOff (): ReadonlyMap<string, readonly string[]> {
    return new Map(this.all().filter(({ enabled }) => !enabled).map(upstream => [upstream.name, this.models(upstream)]))
  }

  /** Whether it has no list, and none of its failures says that there will be none for now. */
  isAwaited (name: string): boolean {
    const cached = this.#cache.get(name)
    return this.get(name)?.enabled === true && (cached === undefined || (cached.refreshedAt === null && this.#running.has(name)))
  }

  /** What `GET /v1/models` shows, in upstream order. */
  listed (): ReadonlyArray<{ readonly upstream: string, readonly rows: readonly UpstreamRow[] }> {
    return this.all().filter(upstream => upstream.enabled && upstream.advertise_models).map(upstream => {
      const told = this.#cache.get(upstream.name)?.rows ?? []
      const named = this.models(upstream).slice(told.length).map(id => ({ id, fields: {} }))
      return { upstream: upstream.name, rows: [...told, ...named].filter(({ id }) => isListed(id, upstream.model_filters)) }
    })
  }

  /** Whether `refresh` would ask any upstream. */
  isDue (which: Due): boolean {
    return this.#due(which).length > 0
  }

  /**
   * Fetches the lists that are due, some at a time, and waits at most the prefetch timeout; what comes later is
   * kept anyway.
   * @param passed gateways that the question came through: the more there are, the less each waits for the next
   * @param heard called after each list, or failure
   */
  async refresh (which: Due, signal: AbortSignal, passed: readonly string[] = [], heard = (): void => {}): Promise<void> {
    const { prefetch_timeout_s: timeoutS } = this.#deps.config.snapshot.svc.dispatcher
    const due = this.#due(which)
    if (due.length === 0 || signal.aborted) return
    const { controller: over, dispose } = linkedAbort(signal)
    void this.#fetchAll(due, signal, passed, heard).then(() => over.abort())
    await pause(this.#deps.clock, timeoutS * 1000 / (1 + passed.length), over.signal)
    dispose()
  }

  /** Asks one for its list now, whatever is known of it. The wait ends with the signal, the question goes on. */
  async ask (upstream: Upstream, signal: AbortSignal): Promise<ListAnswer> {
    this.#running.delete(upstream.name)
    return await abortable(this.#fetchOnce(upstream, []), signal)
  }

  /** Asks those that are to be known before they are needed. */
  warm (): void {
    void this.#fetchAll(this.all().filter(({ enabled, warmup_strategy: strategy }) => enabled && (strategy === 'always' || strategy === 'eager')), this.#stopped.signal)
  }

  /** Reads JSON beside its `/v1`; never rejects. */
  read (upstream: Upstream, path: string, signal: AbortSignal): Promise<UpstreamReading> {
    return readUpstream(path, {
      ...this.#question(upstream),
      signal: AbortSignal.any([signal, this.#stopped.signal])
    })
  }

  /** Called after `changed`. Returns the function that unregisters it. */
  onModels (call: () => void): () => void {
    const entry = { call }
    this.#listeners.add(entry)
    return () => { this.#listeners.delete(entry) }
  }

  close (): void {
    this.#stopped.abort(new Error('the gateway is stopping'))
  }

  /** Upstreams were changed: what is known of those that are another now, or gone, is forgotten. */
  follow (next: ConfigSnapshot, previous: ConfigSnapshot): void {
    const now = upstreamsOf(next)
    for (const before of upstreamsOf(previous).values()) {
      const { url, auth_style, auth_header, auth_value_env } = now.get(before.name) ?? {}
      const same = url === before.url && auth_style === before.auth_style &&
        auth_header === before.auth_header && auth_value_env === before.auth_value_env
      if (same) continue
      this.#cache.delete(before.name)
      this.#running.delete(before.name)
      this.#deps.replaced(before.name)
    }
    for (const way of waysLeft(next, previous)) this.#deps.left(way)
  }

  get #upstreams (): ReadonlyMap<string, Upstream> {
    const { snapshot } = this.#deps.config
    if (this.#known?.of !== snapshot) this.#known = { of: snapshot, upstreams: upstreamsOf(snapshot) }
    return this.#known.upstreams
  }

  /** Those that answered last time come first: one that keeps silent takes the place of another. */
  #due (which: Due): Upstream[] {
    const due = this.all().filter(({ enabled, name }) => enabled && this.#isDue(name, which))
    const failed = ({ name }: Upstream): number => this.#cache.get(name)?.error == null ? 0 : 1
    return due.sort((a, b) => failed(a) - failed(b))
  }

  #isDue (name: string, which: Due): boolean {
    const cached = this.#cache.get(name)
    if (cached === undefined) return true
    if (which === 'untried') return false
    const age = this.#deps.clock.monotonic() - cached.triedAt
    if (cached.error !== null) return age > RETRY_AFTER_ERROR_MS && (which === 'old' || cached.ids.length === 0)
    return which === 'old' && age > this.#deps.config.snapshot.svc.dispatcher.models_ttl_s * 1000
  }

  #fetchAll (
    due: readonly Upstream[], signal: AbortSignal, passed: readonly string[] = [], heard = (): void => {}
  ): Promise<void> {
    const { clock, config } = this.#deps
    const cap = config.snapshot.svc.dispatcher.prefetch_parallel_cap
    return askInTurn(due, { clock, cap, signal, heard, ask: upstream => this.#fetchOnce(upstream, passed) })
  }

  #fetchOnce (upstream: Upstream, passed: readonly string[]): Promise<ListAnswer> {
    const running = this.#running.get(upstream.name)
    if (running !== undefined) return running
    const isLatest = (): boolean => this.#running.get(upstream.name) === fetched
    const fetched: Promise<ListAnswer> = this.#fetch(upstream, passed, isLatest).finally(() => {
      if (isLatest()) this.#running.delete(upstream.name)
    })
    this.#running.set(upstream.name, fetched)
    return fetched
  }

  /** @param counts whether the upstream is still the one that is asked */
  async #fetch (upstream: Upstream, passed: readonly string[], counts: () => boolean): Promise<ListAnswer> {
    const answer = await fetchModels(this.#question(upstream, passed))
    if (counts()) this.#keep(upstream.name, answer)
    return answer
  }

  #question (upstream: Upstream, passed: readonly string[] = []): UpstreamQuestion {
    const { config, dispatcher, token } = this.#deps
    return {
      upstream,
      dispatcher,
      secret: name => config.secret(name),
      timeoutMs: config.snapshot.svc.dispatcher.prefetch_timeout_s * 1000,
      signal: this.#stopped.signal,
      via: [...passed, token]
    }
  }

  #keep (name: string, { rows, error }: ListAnswer): void {
    const { clock, log, events } = this.#deps
    const before = this.#cache.get(name)
    const triedAt = clock.monotonic()
    if (rows !== null) {
      this.#cache.set(name, { ids: rows.map(({ id }) => id), rows, refreshedAt: clock.now(), triedAt, error: null })
      if (before?.refreshedAt == null || !isDeepStrictEqual(before.rows, rows)) this.#tell()
      return
    }
    const { ids = [], rows: old = [], refreshedAt = null } = before ?? {}
    this.#cache.set(name, { ids, rows: old, refreshedAt, triedAt, error })
    log.debug({ upstream: name, error }, 'model list of upstream could not be fetched')
    if (before?.error == null && !this.#stopped.signal.aborted) {
      events.emit({ type: 'system.upstream_unhealthy', severity: 'warn', source: `upstream:${name}`, message: error, data: { upstream: name } })
    }
  }

  #tell (): void {
    const { changed, log } = this.#deps
    changed()
    for (const { call } of this.#listeners) {
      try {
        call()
      } catch (error) {
        log.error({ err: error }, 'a listener of upstream models failed')
      }
    }
  }
}
