/**
 * What was worked out about slots, for as long as what it was worked out from is the same. A list of many slots asks for all
 * of it each time, and the command line of a slot takes longer to put together than the rest of its record.
 */
export class KeptPlans {
  readonly #madeOf: (name: string) => readonly unknown[]
  readonly #plans = new Map<string, { readonly parts: readonly unknown[], readonly made: Map<string, unknown> }>()

  /** @param madeOf everything that the plans of a slot depend on; compared by identity */
  constructor (madeOf: (name: string) => readonly unknown[]) {
    this.#madeOf = madeOf
  }

  /** What `make` gives; what it throws is not kept. */
  of<T> (what: string, name: string, make: () => T): T {
    const parts = this.#madeOf(name)
    let plan = this.#plans.get(name)
    if (plan === undefined || !plan.parts.every((part, i) => part === parts[i])) {
      // a name that is gone is forgotten with the next change
      if (plan !== undefined) this.#plans.clear()
      plan = { parts, made: new Map() }
      this.#plans.set(name, plan)
    }
    if (!plan.made.has(what)) plan.made.set(what, make())
    return plan.made.get(what) as T
  }
}
