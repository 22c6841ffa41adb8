import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { startBackground } from '../../../../plugins/services/memory-engine/background.js'
import type { Core } from '../../../../plugins/services/memory-engine/core.js'
import { EmbeddedEngine, type EmbeddedOptions } from '../../../../plugins/services/memory-engine/embedded-engine.js'
import type { Abilities } from '../../../../plugins/services/memory-engine/messages.js'
import { answerRequest } from '../../../../plugins/services/memory-engine/router.js'
import { openStore } from '../../../../plugins/services/memory-engine/store/open.js'
import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import type { WireAnswer } from '../../../../plugins/services/memory-engine/wire/answer.js'

export interface Answer<T = Record<string, unknown>> {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: T
}

export const noModels: Abilities = {
  embed: { model: null, why: 'there is none' }, rerank: { model: null, why: 'there is none' }, chat: { model: null, why: 'there is none' }
}

export interface Wire {
  readonly engine: EmbeddedEngine
  readonly path: string
  /** A path below `/v1/default/banks/` unless it begins with a slash; what is no buffer is sent as JSON. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- an answer of the wire
  readonly call: <T = any>(method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer<T>>
}

/** An engine on a folder of the test; with `options` of its own, such as a path or models. */
export function openEngine (t: Test, options: Partial<EmbeddedOptions> = {}): Wire {
  const path = options.path?.() ?? join(t.testdir(), 'memory', 'memory.db')
  const engine = new EmbeddedEngine({
    abilities: () => noModels, run: () => Promise.reject(new Error('no models here')), log: () => {}, ...options, path: () => path
  })
  t.teardown(() => engine.close())
  return { engine, path, call: callsOf(engine) }
}

/** Of an answer that comes whole or in pieces. */
export async function bytesOf ({ body }: Pick<WireAnswer, 'body'>): Promise<Buffer> {
  if (Symbol.asyncIterator in body) return await buffer(body)
  if (Buffer.isBuffer(body)) return body
  const bytes = Buffer.alloc(body.size)
  body.writeInto(bytes)
  return bytes
}

export function callsOf (engine: Pick<EmbeddedEngine, 'request'>): Wire['call'] {
  return async <T>(method: string, target: string, body?: unknown, headers: Record<string, string> = {}) => {
    const [path = '', query = ''] = (target.startsWith('/') ? target : `/v1/default/banks/${target}`).split('?')
    const sent = body === undefined ? null : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
    const answer = await engine.request({
      method, path, query, body: sent, signal: new AbortController().signal,
      headers: { ...sent === null ? {} : { 'content-type': 'application/json' }, ...headers }
    })
    const text = (await bytesOf(answer)).toString('utf8')
    return { status: answer.status, headers: answer.headers, body: (text === '' ? null : JSON.parse(text)) as T }
  }
}

/** Where an engine in the thread of the test has its database. */
export const databaseIn = (folder: string): string => join(folder, 'memory', 'memory.db')

interface InThread extends Pick<Wire, 'call'> {
  readonly engine: Pick<EmbeddedEngine, 'request'>
  readonly core: Core
  readonly statements: () => number
  readonly rows: () => number
  readonly most: () => number
  readonly lists: () => number
  readonly characters: () => number
}

/**
 * An engine in the thread of the test, which can count what it asks its database: statements, rows, the most rows of one, and
 * the characters that go and come.
 */
export function openInThread (
  t: Test, folder = t.testdir(), outside: Partial<Core['outside']> = {}, now: () => number = Date.now
): InThread {
  const ends = new AbortController()
  const store = openStore(databaseIn(folder))
  let [count, rows, most, lists, characters] = [0, 0, 0, 0, 0]
  const readLists = store.lists.bind(store) as (...args: unknown[]) => unknown
  Object.assign(store, { lists: (...args: unknown[]) => (lists++, readLists(...args)) })
  const measured = (...values: readonly unknown[]): void => { characters += JSON.stringify(values).length }
  const get = store.get.bind(store) as (...args: unknown[]) => unknown
  Object.assign(store, {
    get: (...args: unknown[]) => {
      const found = get(...args)
      measured(found ?? null)
      return found
    }
  })
  for (const name of ['all', 'run'] as const) {
    const own = store[name].bind(store) as (...args: unknown[]) => unknown
    Object.assign(store, {
      [name]: (...args: unknown[]) => {
        count++
        const found = own(...args)
        measured(args, found)
        if (Array.isArray(found)) [rows, most] = [rows + found.length, Math.max(most, found.length)]
        return found
      }
    })
  }
  const core: Core = {
    store, now, log: () => {}, closing: ends.signal,
    outside: { abilities: noModels, onAbilities: () => () => {}, run: () => Promise.reject(new Error('no models here')), ...outside },
    hooks: { retaining: [], retained: [], answered: [], retainLater: null }
  }
  startBackground(core)
  t.teardown(() => {
    ends.abort(new Error('the test is over'))
    store.close()
  })
  const engine: Pick<EmbeddedEngine, 'request'> = {
    request: async ({ method, path, query, headers, body, signal }) => {
      // what else is to be done has its turn, as beside a thread
      await new Promise(resolve => { setImmediate(resolve) })
      const sent = (body ?? Buffer.alloc(0)) as Buffer
      const wire = { method, path, query, headers: headers as Record<string, string>, body: sent, signal }
      const answer = await answerRequest(core, wire)
      return { ...answer, body: Symbol.asyncIterator in answer.body ? Readable.from(answer.body) : await bytesOf(answer) }
    }
  }
  const counts = {
    statements: () => count, rows: () => rows, most: () => most, lists: () => lists, characters: () => characters
  }
  return { engine, core, call: callsOf(engine), ...counts }
}

/** How many memories are too many for one transaction. */
export const MANY = 1500

interface LargeBank extends InThread {
  readonly folder: string
  /** The database, as another program reads it. */
  readonly seen: Store
}

/** An engine with a large bank `b`, which a bank `other` with one memory is beside. `partOf` adds to what is retained. */
export async function openLarge (t: Test, partOf: (i: number) => object = () => ({})): Promise<LargeBank> {
  const folder = t.testdir()
  const wire = openInThread(t, folder)
  const items = Array.from({ length: MANY }, (_, i) => ({ content: `Ship ${i} lies in the harbour.`, tags: ['ships'], ...partOf(i) }))
  t.equal((await wire.call('POST', 'b/memories', { items })).status, 200)
  await wire.call('POST', 'other/memories', { items: [{ content: 'Alice lives in Rome.', entities: [{ text: 'Alice' }] }] })
  const seen = openStore(join(folder, 'memory', 'memory.db'))
  t.teardown(() => seen.close())
  return { ...wire, folder, seen }
}

/** Resolves when something is so, with other work in between. */
export async function whenever (isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(resolve => { setImmediate(resolve) })
}

/** The folder with what an engine that is killed now would leave. */
export function killedNow (folder: string): string {
  const killed = join(folder, 'killed')
  mkdirSync(join(killed, 'memory'), { recursive: true })
  for (const part of ['', '-wal']) {
    const file = join(folder, 'memory', `memory.db${part}`)
    if (existsSync(file)) copyFileSync(file, join(killed, 'memory', `memory.db${part}`))
  }
  return killed
}
