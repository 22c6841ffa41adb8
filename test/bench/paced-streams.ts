import { request, type Agent } from 'node:http'
import type { BenchProgram } from './servers.js'

/** What an upstream is asked for, so that its streams stand still until it is their turn. */
export const pacedText = (group: string): string => `in the pace of ${group}`

const TOKEN = Buffer.from('token')

/**
 * Streams that are open all the time, of which a group at a time gets events, at a steady rate: so what an event costs is had
 * without the requests, in turns as short as they may be.
 */
export class PacedStreams {
  readonly #upstream: BenchProgram
  readonly #group: string
  #seen = 0
  #wanted = 0
  #reached = (): void => {}

  constructor (upstream: BenchProgram, group: string) {
    this.#upstream = upstream
    this.#group = group
  }

  /** Opens streams, which end with the agent. @param body asks for `pacedText` of the group */
  async open (count: number, url: string, agent: Agent, body: object): Promise<void> {
    const begun = this.#until(count)
    for (let i = 0; i < count; i++) {
      const req = request(url, { method: 'POST', agent, headers: { 'content-type': 'application/json' } }, res => {
        if (res.statusCode !== 200) throw new Error(`${url} answered ${res.statusCode}`)
        res.on('data', (chunk: Buffer) => this.#count(chunk))
        res.on('error', () => {})
      })
      req.on('error', () => {})
      req.end(JSON.stringify(body))
    }
    await begun
  }

  /** Resolves when all of the events have come. */
  async turn (events: number, perMs: number): Promise<void> {
    const come = this.#until(this.#seen + events)
    await this.#upstream.ask(`pace ${this.#group} ${events} ${perMs}`)
    await come
  }

  #until (wanted: number): Promise<void> {
    this.#wanted = wanted
    return new Promise(resolve => { this.#reached = resolve })
  }

  #count (chunk: Buffer): void {
    for (let at = chunk.indexOf(TOKEN); at !== -1; at = chunk.indexOf(TOKEN, at + 1)) this.#seen++
    if (this.#seen >= this.#wanted) this.#reached()
  }
}
