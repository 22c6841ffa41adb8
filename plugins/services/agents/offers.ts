import type { AgentDescriptor, Clock } from 'svc-gateway/plugin'
import { fittingForm, type FittingDeps } from './provision/fitting.js'
import type { AgentLifecycle, AgentOffer, AgentOffers, InstallForm } from './ref.js'

export interface OfferDeps extends FittingDeps {
  readonly clock: Clock
  readonly lifecycle: Pick<AgentLifecycle, 'list'>
}

/** What a look is good for: it starts several programs. */
const LOOKED_MS = 60_000
/** One that found nothing: what it missed may have been too slow for it, or has been installed since. */
const MISSED_MS = 5_000

interface Look { readonly form: Promise<InstallForm | null>, goodUntilMs: number }

/** The agents that an installation would not refuse here. */
export class Offers implements AgentOffers {
  readonly #deps: OfferDeps
  readonly #looks = new Map<string, Look>()

  constructor (deps: OfferDeps) {
    this.#deps = deps
  }

  async list (): Promise<readonly AgentOffer[]> {
    const { known, lifecycle } = this.#deps
    const here = lifecycle.list().filter(({ installed_at: at }) => at !== null)
    const installed = new Map(here.map(({ name, form }) => [name, form]))
    const offers = await Promise.all(known.list().map(async (agent): Promise<AgentOffer | null> => {
      const form = installed.get(agent.id) ?? await this.#formOf(agent)
      return form === null ? null : { agent, bytes: agent.install?.[form]?.bytes ?? null, installed: installed.has(agent.id) }
    }))
    return offers.filter(offer => offer !== null)
  }

  #formOf (agent: AgentDescriptor): Promise<InstallForm | null> {
    const { clock } = this.#deps
    const last = this.#looks.get(agent.id)
    if (last !== undefined && clock.monotonic() < last.goodUntilMs) return last.form
    const form = agent.install === undefined
      ? Promise.resolve(null)
      : fittingForm(this.#deps, agent, undefined, false).catch(() => {
          look.goodUntilMs = clock.monotonic() + MISSED_MS
          return null
        })
    const look: Look = { form, goodUntilMs: clock.monotonic() + LOOKED_MS }
    this.#looks.set(agent.id, look)
    return form
  }
}
