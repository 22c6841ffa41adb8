import { appendFile, mkdir, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SerialQueue, type Clock } from 'svc-gateway/plugin'
import { logsOf } from '../book/data.js'
import { agentPhases, type AgentPhase } from '../ref.js'

/** An installer may say much, and phases are done again: beyond this a log is the one before, which replaces what was. */
const LARGEST = 512 * 1024

/** What the phases of an agent's installation write. */
export class PhaseLog {
  readonly #folderOf: (id: string) => string
  readonly #clock: Clock
  /** Lines come in their order. */
  readonly #lines = new SerialQueue()

  constructor (folderOf: (id: string) => string, clock: Clock) {
    this.#folderOf = folderOf
    this.#clock = clock
  }

  /** Never rejects: a disk that is full is told by the phase itself. */
  write (id: string, phase: AgentPhase, line: string): Promise<void> {
    const text = `${new Date(this.#clock.now()).toISOString()} ${line}\n`
    return this.#lines.run(() => this.#append(logsOf(this.#folderOf(id)), phase, text)).catch(() => undefined)
  }

  /** In the order of the phases; those that wrote nothing are left out. */
  async read (id: string): Promise<ReadonlyArray<{ readonly phase: AgentPhase, readonly lines: readonly string[] }>> {
    const folder = logsOf(this.#folderOf(id))
    const texts = async (phase: AgentPhase): Promise<string> =>
      (await Promise.all([`${phase}.log.1`, `${phase}.log`].map(name => readFile(join(folder, name), 'utf8').catch(() => '')))).join('')
    const read = async (phase: AgentPhase): Promise<{ phase: AgentPhase, lines: readonly string[] }> =>
      ({ phase, lines: (await texts(phase)).split('\n').filter(line => line !== '') })
    return (await Promise.all(agentPhases.map(read))).filter(({ lines }) => lines.length > 0)
  }

  async #append (folder: string, phase: AgentPhase, text: string): Promise<void> {
    const file = join(folder, `${phase}.log`)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const { size } = await stat(file).catch(() => ({ size: 0 }))
    if (size + text.length > LARGEST && size > 0) await rename(file, `${file}.1`)
    await appendFile(file, text.slice(0, LARGEST))
  }
}
