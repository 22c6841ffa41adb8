import { writeSync } from 'node:fs'
import { startBackground } from '../../../../../plugins/services/memory-engine/background.js'
import type { Core } from '../../../../../plugins/services/memory-engine/core.js'
import { operationsOf } from '../../../../../plugins/services/memory-engine/operations/operations.js'
import { answerRequest } from '../../../../../plugins/services/memory-engine/router.js'
import { openStore } from '../../../../../plugins/services/memory-engine/store/open.js'
import { bytesOf, noModels } from '../support.js'

type Fields = Record<string, string>

/** The engine of a program of its own, without what goes on in the background. */
export interface Opened {
  readonly core: Core
  /** As `call` of a `Wire`, but that it rejects what is refused. */
  readonly ask: (method: string, target: string, body?: Buffer | object, headers?: Fields) => Promise<Fields>
  readonly close: () => void
}

/** The engine of a program that is killed: what it is asked, and what is said of that. */
export interface Program extends Opened {
  /** Resolves when an operation, or all its parts, are over. */
  readonly ended: (id: string) => Promise<void>
  /** Says that an operation was acknowledged, waits until it is over, and says so. */
  readonly done: (name: string, answer: Fields) => Promise<void>
}

/** At once, whatever becomes of this process. */
export function say (line: string): void {
  writeSync(1, `${line}\n`)
}

export function openCore (path: string, outside: Partial<Core['outside']> = {}, now = (): number => Date.now()): Opened {
  const closing = new AbortController()
  const core: Core = {
    store: openStore(path), now, log: () => {}, closing: closing.signal,
    outside: outsideOf(outside),
    hooks: { retaining: [], retained: [], answered: [], retainLater: null }
  }
  const ask: Opened['ask'] = async (method, target, body, headers = { 'content-type': 'application/json' }) => {
    const sent = body === undefined ? Buffer.alloc(0) : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
    const [place = '', query = ''] = target.split('?')
    const answer = await answerRequest(core, {
      method, path: place.startsWith('/') ? place : `/v1/default/banks/${place}`, query, headers, body: sent, signal: new AbortController().signal
    })
    const bytes = await bytesOf(answer)
    if (answer.status >= 300) throw new Error(`${method} ${target}: ${answer.status} ${bytes.toString()}`)
    return answer.headers['content-type'] === 'application/zip' ? { bytes: bytes.toString('base64') } : JSON.parse(bytes.toString()) as Fields
  }
  const close = (): void => {
    closing.abort(new Error('the memory engine is closing'))
    core.store.close()
  }
  return { core, ask, close }
}

export function openProgram (path: string, outside: Partial<Core['outside']> = {}): Program {
  const opened = openCore(path, outside)
  const { core } = opened
  startBackground(core)
  const waiting = new Map<string, () => void>()
  const over = new Set<string>()
  operationsOf(core).ended.push(({ id, parentId }) => {
    for (const each of [id, parentId ?? id]) {
      over.add(each)
      waiting.get(each)?.()
    }
  })
  const ended: Program['ended'] = async id => {
    if (!over.has(id)) await new Promise<void>(resolve => waiting.set(id, resolve))
  }
  const done: Program['done'] = async (name, { operation_id: id }) => {
    say(`acknowledged ${name}`)
    await ended(id!)
    say(`over ${name}`)
  }
  return { ...opened, ended, done }
}

/** What is given stays a property of its object: it may change. */
function outsideOf (given: Partial<Core['outside']>): Core['outside'] {
  const none = { abilities: noModels, onAbilities: () => () => {}, run: () => Promise.reject(new Error('no models')) }
  return Object.defineProperties(none, Object.getOwnPropertyDescriptors(given)) as Core['outside']
}
