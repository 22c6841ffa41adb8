import type { Clock } from 'svc-gateway/plugin'
import { askEngine, bankPath, engineFailure } from './engine-call.js'
import type { MemoryEngine } from './engine.js'
import { checkBankOf } from './namespaces.js'

/** What a name means is asked again after so long. */
const KNOWN_MS = 30_000
const MOST_KNOWN = 1000

/** Which bank a name means to the engine: on a Hindsight server a bank may have other names, given behind the gateway's back. */
export class BankNames {
  readonly #clock: Clock
  #engine: MemoryEngine | null = null
  readonly #known = new Map<string, { readonly bank: string, readonly untilMs: number }>()

  constructor (clock: Clock) {
    this.#clock = clock
  }

  /**
   * Throws `memory.bank_private` where a name leads to what belongs to another agent. The operator may enter every bank.
   * @param agent null for the operator
   */
  async check (engine: MemoryEngine, agent: string | null, bank: string, signal: AbortSignal): Promise<void> {
    if (agent === null) return
    checkBankOf(agent, bank)
    // the embedded engine reaches no private bank by another name
    if (engine.name !== 'embedded') checkBankOf(agent, await this.#bankOf(engine, bank, signal))
  }

  async #bankOf (engine: MemoryEngine, name: string, signal: AbortSignal): Promise<string> {
    if (engine !== this.#engine) this.#known.clear()
    this.#engine = engine
    const known = this.#known.get(name)
    if (known !== undefined && known.untilMs > this.#clock.monotonic()) return known.bank
    const path = bankPath(name, 'aliases')
    const answer = await askEngine(engine, { method: 'GET', path, query: 'limit=1', signal })
    // a server that knows no other names
    const hasNone = answer.status === 404 || answer.status === 405
    if (answer.status > 299 && !hasNone) throw engineFailure(answer, path)
    const { bank_id: id } = (answer.value ?? {}) as { readonly bank_id?: unknown }
    const bank = !hasNone && typeof id === 'string' ? id : name
    if (this.#known.size >= MOST_KNOWN) this.#known.clear()
    this.#known.set(name, { bank, untilMs: this.#clock.monotonic() + KNOWN_MS })
    return bank
  }
}
