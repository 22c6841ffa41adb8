import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  messageOf, type AgentDescriptor, type GatewayInfo, type JobPatch, type JobStore, type Logger
} from 'svc-gateway/plugin'
import { dataOf, logsOf, removeAll } from './data.js'
import { agentError } from './errors.js'
import { fittingForm, nothingHere } from './fitting.js'
import { daemonOf, PhaseWork, type PhaseDeps, type PhaseOutcome } from './phases.js'
import { agentFolders, isUnderWay, nextPhase, readRecord, writeRecord, type AgentRecord } from './record.js'
import {
  agentPhases, type AgentLifecycle, type AgentPhase, type AgentStatus, type InstallForm, type InstallOrder,
  type ReprovisionOrder
} from './ref.js'
import { skillsIn, type AgentSkill } from './skills.js'
import { shownStatus } from './status.js'

export interface LifecycleDeps extends PhaseDeps {
  readonly jobs: JobStore
  readonly log: Logger
  readonly version: GatewayInfo['version']
}

type Verb = AgentRecord['verb']
type Phases = AgentRecord['phases']

const JOB_KIND = 'agent'
const KEPT_JOBS = 50
const AROUND: readonly AgentPhase[] = ['data', 'wiring', 'start', 'probe']

/**
 * Brings agents, one at a time. What there is of an agent is its record, written before and after each phase: the gateway may be
 * killed anywhere, and the next one goes on with the first phase that is not over.
 */
export class Lifecycle implements AgentLifecycle {
  readonly #deps: LifecycleDeps
  readonly #work: PhaseWork
  readonly #records = new Map<string, AgentRecord>()
  /** The work that is under way, of whatever agent. */
  #under: { readonly id: string, readonly done: Promise<void> } | null = null

  readonly #ends = new AbortController()

  constructor (deps: LifecycleDeps) {
    this.#deps = { ...deps, signal: AbortSignal.any([deps.signal, this.#ends.signal]) }
    this.#work = new PhaseWork(this.#deps)
  }

  /** Mends what an earlier gateway left half done, and starts what runs with the gateway. Waits for neither. */
  async start (): Promise<void> {
    const { root, daemons, known, log } = this.#deps
    for (const id of await agentFolders(root())) {
      const record = await readRecord(join(root(), id))
      if (record === null) await removeAll(join(root(), id))
      else this.#records.set(id, record)
    }
    for (const daemon of await daemons.found()) {
      if (daemon.startsWith(daemonOf('')) && !this.#records.has(daemon.slice(daemonOf('').length))) await daemons.end(daemon)
    }
    const cutOff = [...this.#records.values()].find(isUnderWay)
    if (cutOff !== undefined) this.#resume(cutOff)
    for (const record of this.#records.values()) {
      const agent = known.find(record.name)
      // a row that could not be written then, as on a full disk, would say for good that the work is under way
      if (!isUnderWay(record)) this.#tellEnd(record)
      if (isUnderWay(record) || agent?.server === undefined || record.installed_at === null) continue
      this.#work.launch(agent, record).catch((error: unknown) => {
        log.warn({ agent: record.name }, `${agent.name} could not be started: ${messageOf(error)}`)
      })
    }
  }

  /** Cuts off what is under way, and resolves when it has ended; the next gateway goes on with it. */
  async stop (): Promise<void> {
    this.#ends.abort(new Error('the gateway stops'))
    await this.#under?.done
  }

  list (): readonly AgentStatus[] {
    return [...this.#records.values()].map(record => this.#shown(record))
  }

  status (id: string): AgentStatus {
    return this.#shown(this.#recordOf(id))
  }

  async settled (id: string): Promise<void> {
    if (this.#under?.id === id) await this.#under.done
  }

  async install (id: string, order: InstallOrder): Promise<AgentStatus> {
    const agent = this.#deps.known.get(id)
    const isThere = this.#inPlace(id)
    if (isThere !== null) return isThere
    this.#inTheWay(id, order)
    const form = await fittingForm(this.#deps, agent, order.form ?? this.#records.get(id)?.form, order.offline === true)
    const skip = [...order.skip ?? [], ...order.offline === true ? ['packages'] as const : []]
    const environment = this.#records.get(id)?.environment ?? null
    if (skip.includes('packages') && await this.#isLost(agent, { form, environment })) throw nothingHere(agent)
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
    const isLost = await this.#isLost(agent, record)
    const phases = phase !== undefined ? [phase] : [...repair || isLost ? ['packages'] as const : [], ...AROUND]
    await fittingForm(this.#deps, agent, record.form, !phases.includes('packages'))
    return await this.#begin(agent, 'reprovision', { phases })
  }

  async bootstrap (id: string, { offline = false, skip = [], dryRun = false }: InstallOrder): Promise<AgentStatus> {
    const { agent, record } = this.#both(id)
    const isLost = await this.#isLost(agent, record)
    if (isLost && (offline || skip.includes('packages'))) throw nothingHere(agent)
    await fittingForm(this.#deps, agent, record.form, !isLost)
    return await this.#begin(agent, 'bootstrap', { phases: [...isLost ? ['packages'] as const : [], ...AROUND], skip, dryRun })
  }

  async uninstall (id: string): Promise<boolean> {
    const record = this.#records.get(id)
    // a plugin that is gone leaves what it described
    if (record === undefined) {
      this.#deps.known.get(id)
      return false
    }
    this.#requireFree(id)
    const marked: AgentRecord = { ...record, verb: 'uninstall', completed_at: null, problem: null }
    await this.#track(id, async () => {
      await this.#write(marked)
      await this.#remove(id)
    })
    return true
  }

  async restart (id: string): Promise<AgentStatus> {
    const { agent, record } = this.#both(id)
    this.#requireFree(id)
    await this.#track(id, async () => {
      await this.#deps.daemons.end(daemonOf(id))
      await this.#work.launch(agent, record)
      await this.#work.probe(agent, record)
    })
    return this.status(id)
  }

  async socket (id: string, anew: boolean): Promise<URL | null> {
    const record = this.#records.get(id)
    const agent = this.#deps.known.find(id)
    if (record === undefined || agent === undefined || isUnderWay(record) || this.#shown(record).unit_active !== true) return null
    return await this.#work.socket(agent, record, anew)
  }

  errands (id: string): ReturnType<AgentLifecycle['errands']> {
    const [record, agent] = [this.#records.get(id), this.#deps.known.find(id)]
    return record === undefined || agent === undefined || isUnderWay(record) ? null : this.#work.errands(agent, record)
  }

  /** Ends its server until it, or the gateway, is started again. Throws `agent.not_installed` and `agent.busy`. */
  async halt (id: string): Promise<void> {
    this.#recordOf(id)
    this.#requireFree(id)
    await this.#track(id, () => this.#deps.daemons.end(daemonOf(id)))
  }

  async log (id: string): ReturnType<AgentLifecycle['log']> {
    this.#recordOf(id)
    const folder = logsOf(this.#work.folderOf(id))
    const read = async (phase: AgentPhase): Promise<{ phase: AgentPhase, lines: readonly string[] }> => {
      const text = await readFile(join(folder, `${phase}.log`), 'utf8').catch(() => '')
      return { phase, lines: text.split('\n').filter(line => line !== '') }
    }
    return (await Promise.all(agentPhases.map(read))).filter(({ lines }) => lines.length > 0)
  }

  async skills (): Promise<readonly AgentSkill[]> {
    const folders = this.list().flatMap(({ name, data_dir: data }) => {
      const folder = this.#deps.known.find(name)?.skills
      return folder === undefined ? [] : [{ name, folder: join(data, folder) }]
    })
    return (await Promise.all(folders.map(({ name, folder }) => skillsIn(name, folder)))).flat()
  }

  /** Its status where an installation has nothing to do. */
  #inPlace (id: string): AgentStatus | null {
    const record = this.#records.get(id)
    const isThere = record !== undefined && (isUnderWay(record) || (record.installed_at !== null && record.problem === null))
    return isThere ? this.#shown(record) : null
  }

  /** The agent that it would replace. Throws `agent.already_installed` where the order does not say to switch. */
  #inTheWay (id: string, order: InstallOrder): AgentRecord | undefined {
    const other = [...this.#records.values()].find(({ name, installed_at: at }) => name !== id && at !== null)
    if (other === undefined || order.switch === true) return other
    throw agentError('agent.already_installed',
      `${other.name} is installed, and one agent is at a time: \`svc agent install ${id} --switch\` takes it away`, { details: { agent: id, installed: other.name } })
  }

  async #begin (agent: AgentDescriptor, verb: Verb, plan: {
    readonly phases: readonly AgentPhase[]
    readonly form?: InstallForm
    readonly skip?: readonly AgentPhase[]
    readonly replaces?: string | null
    readonly version?: string | undefined
    readonly dryRun?: boolean
  }): Promise<AgentStatus> {
    const { jobs, version: svc } = this.#deps
    const { id } = agent
    const before = this.#records.get(id)
    const { phases: planned, skip = [], replaces = null, dryRun = false } = plan
    const at = this.#now()
    const phases: Phases = Object.fromEntries(planned.map(phase =>
      [phase, { status: skip.includes(phase) ? 'skipped' : 'pending', at, reason: null, details: {} }]))
    const form = plan.form ?? before!.form
    const order = this.#work.orderOf(agent, form, plan.version ?? null)
    const asked = order === null || 'image' in order ? null : (order.npm ?? order.python!).version
    const record: AgentRecord = {
      version: null,
      environment: null,
      installed_at: null,
      ...before,
      name: id,
      verb,
      job: null,
      form,
      wanted_version: planned.includes('packages') || before === undefined ? asked : before.wanted_version,
      previous: null,
      replaces,
      completed_at: null,
      problem: null,
      svc_version: svc,
      phases
    }
    if (dryRun) return { ...this.#shown(record), status: 'planned' }
    this.#requireFree(id)
    const job = jobs.create({ kind: JOB_KIND, target: id, state: 'running', message: verb })
    const written = this.#write({ ...record, job: job.id })
    void this.#track(id, async () => {
      await written
      await this.#carryOn(agent)
    }).catch(() => undefined)
    await written
    return this.status(id)
  }

  #resume (record: AgentRecord): void {
    const { known, log } = this.#deps
    const { name } = record
    log.info({ agent: name, verb: record.verb }, `the ${record.verb} of ${name} was cut off and goes on`)
    const agent = known.find(name)
    const work = record.verb === 'uninstall' ? () => this.#remove(name) : agent === undefined ? null : () => this.#carryOn(agent)
    if (work !== null) void this.#track(name, work).catch(() => undefined)
  }

  /** Its phases from the first that is not over. Rejects with what went wrong, which the record says as well. */
  async #carryOn (agent: AgentDescriptor): Promise<void> {
    const { id } = agent
    for (let phase = nextPhase(this.#recordOf(id)); phase !== null; phase = nextPhase(this.#recordOf(id))) {
      try {
        await this.#note(id, phase, 'running')
        this.#tellJob(id, { message: phase, progress: agentPhases.indexOf(phase) / agentPhases.length })
        if (phase === 'replace') await this.#replace(this.#recordOf(id))
        const { details, change = {} } = await this.#work.run(phase, agent, this.#recordOf(id))
        await this.#note(id, phase, 'done', { details, change })
      } catch (error) {
        // cut off: the next gateway goes on with it
        this.#deps.signal.throwIfAborted()
        await this.#failed(agent, phase, messageOf(error))
        throw error
      }
    }
    const at = this.#now()
    const { installed_at: installedAt } = this.#recordOf(id)
    await this.#deps.environments.sweep(this.#work.folderOf(id), this.#recordOf(id).environment)
    await this.#write({ ...this.#recordOf(id), installed_at: installedAt ?? at, completed_at: at, previous: null })
    this.#tellEnd(this.#recordOf(id))
  }

  /** What ran before runs again where the new one does not work. */
  async #failed (agent: AgentDescriptor, phase: AgentPhase, problem: string): Promise<void> {
    const { id } = agent
    await this.#note(id, phase, 'failed', { reason: problem })
    const { previous, ...record } = this.#recordOf(id)
    if (previous !== null && record.installed_at !== null) {
      await this.#write({ ...record, ...previous, previous: null })
      await this.#work.launch(agent, this.#recordOf(id)).catch((error: unknown) => {
        this.#deps.log.warn({ agent: id }, `${agent.name} could not be started again: ${messageOf(error)}`)
      })
      await this.#deps.environments.sweep(this.#work.folderOf(id), previous.environment)
    }
    await this.#write({ ...this.#recordOf(id), previous: null, problem, completed_at: this.#now() })
    this.#tellEnd(this.#recordOf(id))
  }

  async #replace ({ replaces }: AgentRecord): Promise<void> {
    if (replaces === null || !this.#records.has(replaces)) return
    await this.#write({ ...this.#records.get(replaces)!, verb: 'uninstall', completed_at: null, problem: null })
    await this.#remove(replaces)
  }

  async #remove (id: string): Promise<void> {
    await this.#deps.daemons.end(daemonOf(id))
    this.#tellJob(id, { state: 'cancelled' })
    await removeAll(this.#work.folderOf(id))
    this.#records.delete(id)
  }

  /** Whether its program is gone, or was never here. An image is the engine's affair. */
  async #isLost (agent: AgentDescriptor, record: Pick<AgentRecord, 'form' | 'environment'>): Promise<boolean> {
    const program = this.#work.programOf(agent, record)
    return record.form !== 'container' && (program === null || !await isFile(program))
  }

  #both (id: string): { readonly agent: AgentDescriptor, readonly record: AgentRecord } {
    return { agent: this.#deps.known.get(id), record: this.#recordOf(id) }
  }

  #recordOf (id: string): AgentRecord {
    const record = this.#records.get(id)
    if (record !== undefined) return record
    const { install = {} } = this.#deps.known.get(id)
    const command = Object.keys(install).length > 0 ? `\`svc agent install ${id}\` does it` : `it does not bring it, \`svc agent run ${id}\` runs what its makers install`
    throw agentError('agent.not_installed', `${id} was not installed by the gateway: ${command}`, { details: { agent: id } })
  }

  #requireFree (id: string): void {
    if (this.#under === null) return
    throw agentError('agent.busy',
      `${this.#under.id} is being changed: try it again when \`svc agent status ${this.#under.id}\` says that it is done`, { details: { agent: id, under_way: this.#under.id } })
  }

  /** One work at a time: nothing may be awaited between `#requireFree` and this. */
  #track (id: string, work: () => Promise<void>): Promise<void> {
    const running = work()
    const under = { id, done: running.then(() => undefined, () => undefined) }
    this.#under = under
    void under.done.then(() => { if (this.#under === under) this.#under = null })
    return running
  }

  async #note (
    id: string, phase: AgentPhase, status: 'running' | 'done' | 'failed',
    { reason = null, details = {}, change = {} }: Partial<PhaseOutcome> & { readonly reason?: string | null } = {}
  ): Promise<void> {
    await this.#work.write(id, phase, reason === null ? status : `${status}: ${reason}`)
    const record = this.#recordOf(id)
    const told = { status, at: this.#now(), reason, details: { ...details } }
    await this.#write({ ...record, ...change, phases: { ...record.phases, [phase]: told } })
  }

  async #write (record: AgentRecord): Promise<void> {
    await writeRecord(this.#work.folderOf(record.name), record)
    this.#records.set(record.name, record)
  }

  /** The record counts; a row that cannot be written is no reason to stop. */
  #tellJob (id: string, patch: JobPatch): void {
    const { jobs, log } = this.#deps
    const job = this.#records.get(id)?.job
    if (job == null || jobs.get(job)?.finished_at !== null) return
    try {
      jobs.update(job, patch)
      jobs.prune(JOB_KIND, KEPT_JOBS)
    } catch (error) {
      log.warn({ agent: id }, `the job of ${id} cannot be kept: ${messageOf(error)}`)
    }
  }

  #tellEnd ({ name, problem }: AgentRecord): void {
    this.#tellJob(name, problem === null ? { state: 'completed', progress: 1, message: '' } : { state: 'failed', error: problem })
  }

  #now (): string {
    return new Date(this.#deps.clock.now()).toISOString()
  }

  #shown (record: AgentRecord): AgentStatus {
    const { daemons, known } = this.#deps
    const { name } = record
    return shownStatus(record, {
      agent: known.find(name),
      dataDir: dataOf(this.#work.folderOf(name)),
      programOf: agent => this.#work.programOf(agent, record),
      isUp: daemons.status(daemonOf(name)).state === 'running'
    })
  }
}

function isFile (file: string): Promise<boolean> {
  return access(file).then(() => true, () => false)
}
