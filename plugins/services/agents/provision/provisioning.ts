import { messageOf, shellText, type AgentDescriptor, type Logger } from 'svc-gateway/plugin'
import type { AgentBook } from '../book/agent-book.js'
import { removeAll } from '../book/data.js'
import { agentError } from '../errors.js'
import type { PhaseOutcome, PhaseWork } from './phases.js'
import { nextPhase, type AgentRecord } from '../book/record.js'
import { agentPhases, type AgentPhase } from '../ref.js'

/**
 * Work on an agent, by its record, which is written before and after each phase: the gateway may be killed anywhere, and the
 * next one goes on with the first phase that is not over.
 */
export class Provisioning {
  readonly #book: AgentBook
  readonly #work: PhaseWork
  readonly #log: Logger
  readonly #signal: AbortSignal

  constructor (book: AgentBook, work: PhaseWork, log: Logger, signal: AbortSignal) {
    this.#book = book
    this.#work = work
    this.#log = log
    this.#signal = signal
  }

  /** Its phases from the first that is not over. Rejects with what went wrong, which the record says as well. */
  async carryOn (agent: AgentDescriptor): Promise<void> {
    const { id } = agent
    this.#signal.throwIfAborted()
    if (this.#book.get(id).problem !== null) return await this.#endFailed(agent)
    for (let phase = nextPhase(this.#book.get(id)); phase !== null; phase = nextPhase(this.#book.get(id))) {
      try {
        await this.#note(id, phase, 'running')
        this.#book.tellJob(id, { message: phase, progress: agentPhases.indexOf(phase) / agentPhases.length })
        if (phase === 'replace') await this.#replace(this.#book.get(id))
        await this.#note(id, phase, 'done', await this.#work.run(phase, agent, this.#book.get(id)))
      } catch (error) {
        // cut off: the next gateway goes on with it
        this.#signal.throwIfAborted()
        await this.#failed(agent, phase, messageOf(error)).catch((unwritten: unknown) => this.#untold(id, error, unwritten))
        throw error
      }
    }
    const { installed_at: installedAt, environment } = this.#book.get(id)
    await this.#work.packages.sweep(id, environment)
    const at = this.#book.now()
    await this.#book.change(id, { installed_at: installedAt ?? at, completed_at: at, previous: null })
    this.#book.tellEnd(id)
  }

  /** Takes it away, and says before that it will. */
  async remove (id: string): Promise<void> {
    await this.#book.change(id, { verb: 'uninstall', completed_at: null, problem: null })
    await this.#work.servers.end(id)
    this.#book.tellJob(id, { state: 'cancelled' })
    const folder = this.#work.home.folderOf(id)
    const left = await removeAll(folder)
    if (left !== null) {
      // such as what a container wrote as another user
      const command = `sudo ${shellText(['rm', '-rf', '--', ...left.places])}`
      throw agentError('agent.uninstall_incomplete', `${id} no longer runs, but the gateway's user may not delete all of it (${left.count} left; ` +
        `${messageOf(left.first)}): ${command}, then \`svc agent uninstall ${id}\` again`, { cause: left.first, details: { agent: id, folder, left: left.count, command } })
    }
    this.#book.forget(id)
  }

  /** Starts what is installed, from what its record says. Never rejects. */
  async launch (agent: AgentDescriptor): Promise<void> {
    const { id, name } = agent
    try {
      // taken away while it waited
      if (this.#book.find(id) === undefined) return
      await this.#work.servers.launch(agent, this.#book.get(id))
    } catch (error) {
      if (!this.#signal.aborted) this.#log.warn({ agent: id }, `${name} could not be started: ${messageOf(error)}`)
    }
  }

  /** What ran before runs again where the new one does not work. */
  async #failed (agent: AgentDescriptor, phase: AgentPhase, problem: string): Promise<void> {
    const { id } = agent
    const { previous, installed_at: installedAt } = this.#book.get(id)
    const change = { ...previous !== null && installedAt !== null ? previous : {}, previous: null, problem }
    // in one: killed in between, the next gateway would take the phases behind for all that is left to do
    await this.#note(id, phase, 'failed', { reason: problem, change })
    await this.#endFailed(agent)
  }

  /** As on a full disk: the record says that it goes on, which the next order or the next gateway sees to. */
  #untold (id: string, error: unknown, unwritten: unknown): void {
    this.#log.error({ agent: id }, `the work on ${id} has stopped: ${messageOf(error)}; its record cannot be written: ${messageOf(unwritten)}`)
    this.#book.tellJob(id, { state: 'failed', error: messageOf(error) })
  }

  async #endFailed (agent: AgentDescriptor): Promise<void> {
    const { id } = agent
    const { environment, installed_at: installedAt } = this.#book.get(id)
    if (installedAt !== null && environment !== null) await this.launch(agent)
    await this.#work.packages.sweep(id, environment)
    await this.#book.change(id, { completed_at: this.#book.now() })
    this.#book.tellEnd(id)
  }

  async #replace ({ replaces }: AgentRecord): Promise<void> {
    if (replaces !== null && this.#book.find(replaces) !== undefined) await this.remove(replaces)
  }

  async #note (
    id: string, phase: AgentPhase, status: 'running' | 'done' | 'failed', more: Partial<PhaseOutcome> & { readonly reason?: string } = {}
  ): Promise<void> {
    await this.#work.log.write(id, phase, more.reason === undefined ? status : `${status}: ${more.reason}`)
    await this.#book.note(id, phase, status, more)
  }
}
