import { isSvcError, messageOf, pause, type Clock, type Logger } from 'svc-gateway/plugin'
import type { ClusterApi } from './cluster-api.js'
import { jsonLines } from './json-lines.js'
import type { ObjectList, ObjectMeta } from './objects.js'

interface Watched { readonly metadata: ObjectMeta }

export interface WatchedListOptions<T extends Watched> {
  readonly api: Pick<ClusterApi, 'json' | 'stream'>
  readonly clock: Clock
  readonly log: Logger
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** A list is about to be asked for: it cannot know what comes meanwhile. */
  readonly listing: () => void
  /** All that there is, after each list; what is told afterwards came later. */
  readonly listed: (items: readonly T[]) => void
  readonly changed: (item: T) => void
  readonly gone: (item: T) => void
  readonly signal: AbortSignal
  /** How long a watch may say nothing before it is opened anew; absent: 150 s. */
  readonly silentMs?: number
}

interface WatchEvent { readonly type: string, readonly object: Watched & { readonly code?: number } }

/** Where a watch got to, and whether it can go on from there. */
interface Progress { version: string | null }

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000
/** A watch that lasted so long, or told something, was sound. */
const SOUND_MS = 5_000
/** The server ends a watch by then, and it goes on where it was. */
const WATCH_S = 300
/** Bookmarks come every minute or so: a connection on which nothing came for so long has died without a word. */
const SILENT_MS = 150_000
const PAGE = '500'
/** More than a cluster holds: a server that never comes to an end. */
const MOST_OBJECTS = 200_000
const GONE = 410

/** Follows objects: a list, then what changes, over every break of the connection. Never rejects; ends by its signal. */
export async function watchList<T extends Watched> (options: WatchedListOptions<T>): Promise<void> {
  const { clock, log, path, signal } = options
  const at: Progress = { version: null }
  let failures = 0
  while (!signal.aborted) {
    let since = clock.monotonic()
    let toldAny = false
    try {
      at.version ??= await list(options)
      since = clock.monotonic()
      await follow(options, at, () => { toldAny = true })
    } catch (error) {
      if (signal.aborted) return
      if (isSvcError(error) && error.details.status === GONE) at.version = null
      if (failures === 1) log.warn({ err: error, path }, `the cluster cannot be watched: ${messageOf(error)}; retrying`)
      else log.debug({ err: error, path }, 'a watch of the cluster broke')
    }
    if (toldAny || clock.monotonic() - since >= SOUND_MS) failures = 0
    const waitMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10))
    failures++
    await pause(clock, waitMs, signal).catch(() => {})
  }
}

/** Every object. Throws as `ClusterApi.json` does. */
export async function listAll<T extends Watched> (
  api: Pick<ClusterApi, 'json'>, path: string, query: Readonly<Record<string, string>>, signal?: AbortSignal
): Promise<{ readonly items: readonly T[], readonly version: string }> {
  const items: T[] = []
  let version = ''
  for await (const page of listPages<T>(api, path, query, signal)) {
    for (const item of page.items) items.push(item)
    version = page.metadata.resourceVersion ?? ''
  }
  return { items, version }
}

/** Page by page: pages that the caller does not keep take no memory. */
export async function* listPages<T> (
  api: Pick<ClusterApi, 'json'>, path: string, query: Readonly<Record<string, string>> = {}, signal?: AbortSignal
): AsyncIterable<ObjectList<T>> {
  let [next, count] = ['', 0]
  do {
    const page: ObjectList<T> = await api.json<ObjectList<T>>({
      path, query: { ...query, limit: PAGE, ...next === '' ? {} : { continue: next } }, ...(signal === undefined ? {} : { signal })
    })
    yield page
    count += Math.max(1, page.items.length)
    if (count > MOST_OBJECTS) throw new Error(`the list of ${path} has no end`)
    next = page.metadata.continue ?? ''
  } while (next !== '')
}

async function list<T extends Watched> ({ api, path, query, listing, listed, signal }: WatchedListOptions<T>): Promise<string> {
  listing()
  const { items, version } = await listAll<T>(api, path, query, signal)
  listed(items)
  return version
}

/** Resolves when the server ended it. What was told is counted in `at` also when it breaks. */
async function follow<T extends Watched> (
  { api, path, query, changed, gone, signal, silentMs = SILENT_MS }: WatchedListOptions<T>, at: Progress, told: () => void
): Promise<void> {
  const silence = new Silence(silentMs)
  try {
    const body = await api.stream({
      path,
      query: { ...query, watch: 'true', allowWatchBookmarks: 'true', resourceVersion: at.version!, timeoutSeconds: String(WATCH_S) },
      signal: AbortSignal.any([signal, silence.signal])
    })
    for await (const event of jsonLines(body)) {
      silence.broken()
      const { type, object } = event as WatchEvent
      if (type === 'ERROR') {
        if (object.code !== GONE) throw new Error(`the watch was ended: ${JSON.stringify(object).slice(0, 300)}`)
        at.version = null
        return
      }
      told()
      if (type === 'DELETED') gone(object as T)
      else if (type !== 'BOOKMARK') changed(object as T)
      at.version = object.metadata.resourceVersion ?? at.version
    }
  } finally {
    silence.end()
  }
}

/** Aborts its signal when nothing came for a while. One timer, however much comes. */
class Silence {
  readonly #limitMs: number
  readonly #silent = new AbortController()
  #heardAt = performance.now()
  #timer: NodeJS.Timeout

  constructor (limitMs: number) {
    this.#limitMs = limitMs
    this.#timer = this.#wait(limitMs)
  }

  get signal (): AbortSignal { return this.#silent.signal }

  broken (): void { this.#heardAt = performance.now() }

  end (): void { clearTimeout(this.#timer) }

  #wait (ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const leftMs = this.#heardAt + this.#limitMs - performance.now()
      if (leftMs > 0) this.#timer = this.#wait(leftMs)
      else this.#silent.abort(new Error(`nothing came from the watch for ${this.#limitMs / 1000} s`))
    }, ms)
  }
}
