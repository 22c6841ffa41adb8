import { Worker } from 'node:worker_threads'
import { messageOf, type Logger } from 'svc-gateway/plugin'
import type { Announcement, ResponderData, ResponderLoss, ResponderOrder, ResponderReply } from './responder-thread.js'

/** Probing the network for the name and telling it takes two seconds; more means that there is none. */
const ANNOUNCE_MS = 20_000
const WITHDRAW_MS = 3_000

/**
 * Answers multicast DNS itself, where no daemon of the machine does. It runs in a thread of its own, which is there while
 * something is announced; no failure of it reaches the gateway.
 */
export class Responder {
  #worker: Worker | null = null
  #orders = 0
  #advertised: readonly string[] = []
  readonly #log: Logger
  readonly #data: () => ResponderData

  constructor (log: Logger, data: () => ResponderData) {
    this.#log = log
    this.#data = data
  }

  /** Ids of services. */
  get advertised (): readonly string[] {
    return this.#advertised
  }

  /** These and no others. Null, or why it could not be done. Never rejects. */
  async announce (services: readonly Announcement[]): Promise<string | null> {
    const worker = this.#worker ??= this.#start()
    const reply = await this.#ask(worker, services, ANNOUNCE_MS)
    if ('announced' in reply) {
      this.#advertised = reply.announced
      return null
    }
    // the thread of a later order stays
    if (this.#worker === worker) await this.#end()
    return `the local network cannot be notified: ${reply.problem}`
  }

  /** Tells the network that they are gone. Never rejects. */
  async withdraw (): Promise<void> {
    if (this.#worker === null) return
    const reply = await this.#ask(this.#worker, [], WITHDRAW_MS)
    if ('problem' in reply) this.#log.warn({ error: reply.problem }, 'services may be listed in the local network until their records run out')
    await this.#end()
  }

  async #end (): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#advertised = []
    await worker?.terminate()
  }

  #ask (worker: Worker, announce: ResponderOrder['announce'], ms: number): Promise<ResponderReply> {
    const id = ++this.#orders
    return new Promise(resolve => {
      const settle = (reply: ResponderReply | ResponderLoss): void => {
        if ('lost' in reply || reply.id !== id) return
        clearTimeout(timer)
        worker.off('message', settle)
        worker.off('error', fail)
        worker.off('exit', gone)
        resolve(reply)
      }
      const fail = (error: unknown): void => { settle({ id, problem: messageOf(error) }) }
      const gone = (): void => { settle({ id, problem: 'its thread ended' }) }
      const timer = setTimeout(() => { settle({ id, problem: `no answer within ${ms / 1000} s` }) }, ms)
      worker.on('message', settle)
      worker.on('error', fail)
      worker.on('exit', gone)
      worker.postMessage({ id, announce } satisfies ResponderOrder)
    })
  }

  #start (): Worker {
    const worker = new Worker(new URL('./responder-thread.js', import.meta.url), {
      // its library prints
      execArgv: [], stdout: true, stderr: true, workerData: this.#data(), resourceLimits: { maxOldGenerationSizeMb: 64 }
    })
    worker.unref()
    worker.on('error', error => { this.#log.warn({ error: messageOf(error) }, 'the thread that announces services failed') })
    worker.on('message', (word: ResponderReply | ResponderLoss) => {
      if (!('lost' in word) || this.#worker !== worker) return
      this.#log.warn({ error: word.lost }, 'the network changed, and services are not announced in the new one')
      this.#advertised = []
    })
    worker.on('exit', () => {
      if (this.#worker !== worker) return
      this.#worker = null
      this.#advertised = []
    })
    return worker
  }
}
