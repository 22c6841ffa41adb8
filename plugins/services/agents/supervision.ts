import type { AgentDescriptor, Logger } from 'svc-gateway/plugin'
import type { AgentBook } from './book/agent-book.js'
import type { KnownAgents } from './known-agents.js'
import type { PhaseWork } from './provision/phases.js'
import type { Provisioning } from './provision/provisioning.js'
import { isUnderWay, type AgentRecord } from './book/record.js'
import type { SoleWork } from './sole-work.js'

export interface SupervisionDeps {
  readonly known: KnownAgents
  readonly log: Logger
  readonly book: AgentBook
  readonly work: PhaseWork
  readonly provisioning: Provisioning
  readonly sole: SoleWork
}

/** Keeps what is installed running, over restarts of the gateway and changes of plugins. */
export class Supervision {
  readonly #deps: SupervisionDeps
  /** What agents that are here were described as. */
  readonly #seen = new Map<string, AgentDescriptor | undefined>()

  constructor (deps: SupervisionDeps) {
    this.#deps = deps
  }

  /** Mends what an earlier gateway left half done, and starts what runs with the gateway. Waits for neither. */
  async start (): Promise<void> {
    const { book, known, provisioning, sole, work } = this.#deps
    await book.load()
    for (const id of await work.servers.found()) if (book.find(id) === undefined) await work.servers.end(id)
    // a removal first: it may be that of the agent that another one replaces
    const cutOff = book.all().filter(isUnderWay)
    for (const record of cutOff.toSorted((a, b) => Number(isRemoval(b)) - Number(isRemoval(a)))) this.#resume(record)
    for (const record of book.all()) {
      const { name, environment } = record
      const agent = known.find(name)
      this.#seen.set(name, agent)
      if (isUnderWay(record)) continue
      // what the end of an installation that failed did not come to
      await work.packages.sweep(name, environment)
      if (agent === undefined) await work.servers.end(name)
      else if (isServed(agent, record)) void sole.briefly(name, () => provisioning.launch(agent)).catch(() => undefined)
    }
  }

  /** Plugins have come or gone: an agent runs while one describes it, and as that says. */
  follow (): void {
    const { book, known, sole } = this.#deps
    for (const record of book.all()) {
      const { name } = record
      const agent = known.find(name)
      if (this.#seen.has(name) && this.#seen.get(name) === agent) continue
      const isNew = this.#seen.has(name) && this.#seen.get(name) === undefined
      this.#seen.set(name, agent)
      if (isUnderWay(record)) this.#resume(record)
      else void sole.briefly(name, () => this.#takeUp(name, isNew)).catch(() => undefined)
    }
  }

  /** After what is under way. An agent that no plugin describes waits for its plugin. */
  #resume ({ name, verb }: AgentRecord): void {
    const { book, known, log, provisioning, sole } = this.#deps
    void sole.after(name, async () => {
      const [record, agent] = [book.find(name), known.find(name)]
      if (record === undefined || !isUnderWay(record) || (agent === undefined && !isRemoval(record))) return
      log.info({ agent: name, verb }, `the ${verb} of ${name} was interrupted and continues`)
      if (isRemoval(record)) return await provisioning.remove(name)
      // its server was started by a gateway that is gone: one that lives is taken over, and asked only then
      if (record.phases.start?.status === 'done' && record.problem === null) await provisioning.launch(agent!)
      await provisioning.carryOn(agent!)
    }).catch(() => undefined)
  }

  async #takeUp (id: string, isNew: boolean): Promise<void> {
    const { book, known, provisioning, work } = this.#deps
    const [record, agent] = [book.find(id), known.find(id)]
    if (record === undefined || isUnderWay(record)) return
    if (agent === undefined) return await work.servers.end(id)
    // one that was stopped stays so
    if (isServed(agent, record) && (isNew || work.servers.runs(id))) await provisioning.launch(agent)
  }
}

function isServed ({ server }: AgentDescriptor, { installed_at: at }: AgentRecord): boolean {
  return server !== undefined && at !== null
}

function isRemoval ({ verb }: AgentRecord): boolean {
  return verb === 'uninstall'
}
