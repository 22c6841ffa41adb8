import { join } from 'node:path'
import type { AgentDescriptor, GatewayInfo, Logger } from 'svc-gateway/plugin'
import { AgentBook, type AgentBookDeps } from './book/agent-book.js'
import { agentError } from './errors.js'
import { errandsOf } from './home/errands.js'
import { fittingForm, nothingHere } from './provision/fitting.js'
import { PhaseWork, type PhaseDeps } from './provision/phases.js'
import { planned, type Plan } from './provision/plan.js'
import { Provisioning } from './provision/provisioning.js'
import { isUnderWay, type AgentRecord } from './book/record.js'
import {
  agentPhases, type AgentLifecycle, type AgentPhase, type AgentSkill, type AgentStatus, type InstallOrder, type ReprovisionOrder
} from './ref.js'
import { skillsIn } from './skills/skills.js'
import { SoleWork } from './sole-work.js'
import { shownStatus } from './book/status.js'
import { Supervision } from './supervision.js'

export interface LifecycleDeps extends PhaseDeps, AgentBookDeps {
  readonly log: Logger
  readonly version: GatewayInfo['version']
  /** The file that says what an agent may do here. */
  readonly configOf: (id: string) => string
}

const AROUND: readonly AgentPhase[] = ['data', 'wiring', 'start', 'probe']

/** Orders for agents: what is refused, what has to be done, and what there is. */
export class Lifecycle implements AgentLifecycle {
  readonly #deps: LifecycleDeps
  readonly #book: AgentBook
  readonly #work: PhaseWork
  readonly #provisioning: Provisioning
  readonly #sole = new SoleWork()
  readonly supervision: Supervision
  readonly #ends = new AbortController()

  constructor (deps: LifecycleDeps) {
    this.#deps = { ...deps, signal: AbortSignal.any([deps.signal, this.#ends.signal]) }
    this.#book = new AgentBook(deps)
    this.#work = new PhaseWork(this.#deps)
    this.#provisioning = new Provisioning(this.#book, this.#work, deps.log, this.#deps.signal)
    const [book, work, provisioning, sole] = [this.#book, this.#work, this.#provisioning, this.#sole]
    this.supervision = new Supervision({ ...deps, book, work, provisioning, sole })
  }

  /** Cuts off what is under way, and resolves when it has ended; the next gateway goes on with it. */
  async stop (): Promise<void> {
    this.#ends.abort(new Error('the gateway stops'))
    await this.#sole.settled()
  }

  list (): readonly AgentStatus[] {
    return this.#book.all().map(record => this.#shown(record))
  }

  status (id: string): AgentStatus {
    return this.#shown(this.#book.get(id))
  }

  async settled (id: string): Promise<void> {
    await this.#sole.settled(id)
  }

  async install (id: string, order: InstallOrder): Promise<AgentStatus> {
    const agent = this.#deps.known.get(id)
    const isThere = this.#inPlace(id)
    if (isThere !== null) return isThere
    this.#inTheWay(id, order)
    const before = this.#book.find(id)
    const form = await fittingForm(this.#deps, agent, order.form ?? before?.form, order.offline === true)
    const skip = [...order.skip ?? [], ...order.offline === true ? ['packages'] as const : []]
    const environment = before?.form === form ? before.environment : null
    if (skip.includes('packages') && await this.#work.packages.isLost(agent, { form, environment })) throw nothingHere(agent)
    // another order may have been first in the meantime
    const isThereNow = this.#inPlace(id)
    if (isThereNow !== null) return isThereNow
    const other = this.#inTheWay(id, order)
    const phases = agentPhases.filter(phase => phase !== 'replace' || other !== undefined)
    return await this.#begin(agent, 'install', {
      form,
      phases,
      skip,
      replaces: other?.name ?? null,
      dryRun: order.dryRun === true
    })
  }

  async upgrade (id: string, to?: string): Promise<AgentStatus> {
    const { agent, record } = this.#both(id)
    await fittingForm(this.#deps, agent, record.form, false)
    return await this.#begin(agent, 'upgrade', { phases: ['packages', ...AROUND], version: to })
  }

  async reprovision (id: string, { phase, repair = false }: ReprovisionOrder): Promise<AgentStatus> {
    const { agent, record } = this.#both(id)
    const isLost = await this.#work.packages.isLost(agent, record)
    const phases = phase !== undefined ? [phase] : [...repair || isLost ? ['packages'] as const : [], ...AROUND]
    await fittingForm(this.#deps, agent, record.form, !phases.includes('packages'))
    return await this.#begin(agent, 'reprovision', { phases })
  }

  async bootstrap (id: string, { offline = false, skip = [], dryRun = false }: InstallOrder): Promise<AgentStatus> {
    const { agent, record } = this.#both(id)
    const isLost = await this.#work.packages.isLost(agent, record)
    if (isLost && (offline || skip.includes('packages'))) throw nothingHere(agent)
    await fittingForm(this.#deps, agent, record.form, !isLost)
    return await this.#begin(agent, 'bootstrap', { phases: [...isLost ? ['packages'] as const : [], ...AROUND], skip, dryRun })
  }

  async uninstall (id: string): Promise<boolean> {
    // a plugin that is gone leaves what it described
    if (this.#book.find(id) === undefined) {
      this.#deps.known.get(id)
      return false
    }
    await this.#sole.begin(id, () => this.#provisioning.remove(id))
    return true
  }

  async restart (id: string): Promise<AgentStatus> {
    const { agent, record } = this.#both(id)
    await this.#sole.begin(id, async () => {
      await this.#work.servers.end(id)
      await this.#work.servers.launch(agent, record)
      await this.#work.probe(agent, record)
    })
    return this.status(id)
  }

  async socket (id: string, anew: boolean): Promise<URL | null> {
    const record = this.#book.find(id)
    const agent = this.#deps.known.find(id)
    if (record === undefined || agent === undefined || isUnderWay(record) || this.#shown(record).unit_active !== true) return null
    return await this.#work.home.socket(agent, record, anew)
  }

  follow (listener: () => void): () => void { return this.#book.follow(listener) }

  errands (id: string): ReturnType<AgentLifecycle['errands']> {
    const [record, agent] = [this.#book.find(id), this.#deps.known.find(id)]
    return record === undefined || agent === undefined || isUnderWay(record) ? null : errandsOf(this.#work.home, agent, record)
  }

  /** Ends its server until it, or the gateway, is started again. Throws `agent.not_installed` and `agent.busy`. */
  async halt (id: string): Promise<void> {
    this.#book.get(id)
    await this.#sole.begin(id, () => this.#work.servers.end(id))
  }

  async log (id: string): ReturnType<AgentLifecycle['log']> {
    this.#book.get(id)
    return await this.#work.log.read(id)
  }

  async skills (): Promise<readonly AgentSkill[]> {
    const folders = this.#book.all().flatMap(({ name }) => {
      const folder = this.#deps.known.find(name)?.skills
      return folder === undefined ? [] : [{ name, folder: join(this.#work.home.dataOf(name), folder) }]
    })
    return (await Promise.all(folders.map(({ name, folder }) => skillsIn(name, folder)))).flat()
  }

  /** Its status where an installation has nothing to do. */
  #inPlace (id: string): AgentStatus | null {
    const record = this.#book.find(id)
    // work whose steps cannot be written, as on a full disk, is under way by the record alone: it is begun anew
    const isThere = record !== undefined &&
      (isUnderWay(record) ? this.#sole.isUnderWay(id) : record.installed_at !== null && record.problem === null)
    return isThere ? this.#shown(record) : null
  }

  /** The agent that it would replace. Throws `agent.already_installed` where the order does not say to switch. */
  #inTheWay (id: string, order: InstallOrder): AgentRecord | undefined {
    const other = this.#book.all().find(({ name, installed_at: at }) => name !== id && at !== null)
    if (other === undefined || order.switch === true) return other
    throw agentError('agent.already_installed',
      `${other.name} is installed, and only one agent can be: \`svc agent install ${id} --switch\` uninstalls it`, { details: { agent: id, installed: other.name } })
  }

  async #begin (agent: AgentDescriptor, verb: AgentRecord['verb'], plan: Plan): Promise<AgentStatus> {
    const { id } = agent
    if (plan.dryRun === true) return { ...this.#shown({ ...this.#planned(agent, verb, plan), job: null }, true), status: 'planned' }
    return await new Promise((resolve, reject) => {
      // what goes wrong once it has begun is told by the record
      this.#sole.begin(id, async () => {
        await this.#book.begin(this.#planned(agent, verb, plan))
        resolve(this.status(id))
        await this.#provisioning.carryOn(agent)
      }).catch(reject)
    })
  }

  #planned (agent: AgentDescriptor, verb: AgentRecord['verb'], plan: Plan): Omit<AgentRecord, 'job'> {
    // it may have been taken away while others were asked for it
    if (verb !== 'install') this.#book.get(agent.id)
    return { ...planned(agent, verb, plan, this.#book.find(agent.id), this.#book.now()), svc_version: this.#deps.version }
  }

  #both (id: string): { readonly agent: AgentDescriptor, readonly record: AgentRecord } {
    return { agent: this.#deps.known.get(id), record: this.#book.get(id) }
  }

  #shown (record: AgentRecord, isWorkedOn = this.#sole.isUnderWay(record.name)): AgentStatus {
    const { name } = record
    return shownStatus(record, {
      agent: this.#deps.known.find(name),
      dataDir: this.#work.home.dataOf(name),
      configPath: this.#deps.configOf(name),
      programOf: agent => this.#work.home.programOf(agent, record),
      isUp: this.#work.servers.runs(name),
      isWorkedOn
    })
  }
}
