import { StringDecoder } from 'node:string_decoder'
import { isSvcError, messageOf, pause, type Clock, type Logger } from 'svc-gateway/plugin'
import type { ClusterApi } from './cluster-api.js'
import type { ObjectList, ObjectMeta } from './objects.js'

interface Watched { readonly metadata: ObjectMeta }

export interface WatchedListOptions<T extends Watched> {
  readonly api: ClusterApi
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
}

interface WatchEvent { readonly type: string, readonly object: Watched & { readonly code?: number } }

const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 5_000
/** The server ends a watch by then, and it goes on where it was. */
const WATCH_S = 300
const LONGEST_LINE = 8 * 1024 * 1024
const PAGE = '500'
const GONE = 410

/** Follows objects: a list, then what changes, over every break of the connection. Never rejects; ends by its signal. */
export async function watchList<T extends Watched> (options: WatchedListOptions<T>): Promise<void> {
  const { clock, log, path, signal } = options
  let version: string | null = null
  let failures = 0
  while (!signal.aborted) {
    try {
      version ??= await list(options)
      const ended: string | null = await follow(options, version, () => { failures = 0 })
      version = ended
    } catch (error) {
      if (signal.aborted) return
      if (isSvcError(error) && error.details.status === GONE) version = null
      failures++
      if (failures === 2) log.warn({ err: error, path }, `the cluster does not tell what changes: ${messageOf(error)}; it is asked again and again`)
      else log.debug({ err: error, path }, 'a watch of the cluster broke')
      await pause(clock, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 10)), signal).catch(() => {})
    }
  }
}

/** Every object. Throws as `ClusterApi.json` does. */
export async function listAll<T extends Watched> (
  api: ClusterApi, path: string, query: Readonly<Record<string, string>>, signal?: AbortSignal
): Promise<{ readonly items: readonly T[], readonly version: string }> {
  const items: T[] = []
  let next = ''
  for (;;) {
    const page: ObjectList<T> = await api.json<ObjectList<T>>({
      path, query: { ...query, limit: PAGE, ...next === '' ? {} : { continue: next } }, ...(signal === undefined ? {} : { signal })
    })
    items.push(...page.items)
    next = page.metadata.continue ?? ''
    if (next === '') return { items, version: page.metadata.resourceVersion ?? '' }
  }
}

async function list<T extends Watched> ({ api, path, query, listing, listed, signal }: WatchedListOptions<T>): Promise<string> {
  listing()
  const { items, version } = await listAll<T>(api, path, query, signal)
  listed(items)
  return version
}

/** Resolves with where it got to when the server ended it; null: list again. */
async function follow<T extends Watched> (
  { api, path, query, changed, gone, signal }: WatchedListOptions<T>, from: string, sound: () => void
): Promise<string | null> {
  const body = await api.stream({
    path,
    query: { ...query, watch: 'true', allowWatchBookmarks: 'true', resourceVersion: from, timeoutSeconds: String(WATCH_S) },
    signal
  })
  sound()
  let version = from
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + decoder.write(chunk as Buffer)).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > LONGEST_LINE) throw new Error('an event of the watch is too long')
    for (const line of lines) {
      if (line === '') continue
      const { type, object } = JSON.parse(line) as WatchEvent
      if (type === 'ERROR') {
        if (object.code === GONE) return null
        throw new Error(`the watch was ended: ${line.slice(0, 300)}`)
      }
      version = object.metadata.resourceVersion ?? version
      if (type === 'BOOKMARK') continue
      if (type === 'DELETED') gone(object as T)
      else changed(object as T)
    }
  }
  return version
}
