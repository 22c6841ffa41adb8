import { randomUUID } from 'node:crypto'
import { isSvcError, messageOf, SerialQueue, svcError, type Logger } from 'svc-gateway/plugin'
import type { CapabilityChild } from '../../services/capabilities/ref.js'
import { stackCatalog, type NamedStack } from '../../services/stack-catalog/ref.js'
import { converge, isUp, unloads } from './converge.js'
import { shapeStack, type StackPlan } from './plan.js'
import { POINTER_FILE, pointerText, readPointer, type StackPointer } from './pointer.js'
import type { Converged } from './schemas.js'
import type { StackServices } from './stack-api.js'
import { stackNotFound, superseded, wouldBreak } from './stack-errors.js'

interface Run {
  readonly ending: AbortController
  readonly done: Promise<Converged>
}

interface ShapeOptions {
  readonly dryRun: boolean
  /** Even if a serving slot would not come up again. */
  readonly force: boolean
}

interface Shaped {
  readonly stack: NamedStack
  readonly plan: StackPlan
  readonly pointer: StackPointer
}

export interface Preview {
  readonly stack: NamedStack
  readonly plan: StackPlan
  readonly unloads: readonly string[]
}

export interface Applied {
  readonly stack: NamedStack
  readonly plan: StackPlan
  readonly converged: Converged
}

/**
 * Puts stacks into force: one atomic change of the configuration that also writes down what is to run, then the slots
 * follow. A gateway that ends in between goes on with it at its next start. The stack that was applied last wins.
 */
export class StackRunner {
  readonly #services: StackServices
  readonly #log: Logger
  /** One change after the other, each with the beginning of its run. */
  readonly #line = new SerialQueue()
  #run: Run | null = null

  constructor (services: StackServices, log: Logger) {
    this.#services = services
    this.#log = log
  }

  /** What `apply` would do, if it were called now. Refuses what it would refuse. */
  async preview (slug: string): Promise<Preview> {
    const { stack, plan } = await this.#shape(slug, { dryRun: true, force: true })
    return { stack, plan, unloads: unloads(this.#services.slots, plan.target) }
  }

  /**
   * Throws what the guards refuse, with nothing changed, `stacks.would_break` unless forced, and `stacks.superseded`.
   * `committed` hears of the change before the slots follow.
   */
  async apply (slug: string, force: boolean, committed: (plan: StackPlan) => void): Promise<Applied> {
    const { stack, plan, run } = await this.#line.run(async () => {
      // what the guards refuse is told before what would not come up
      if (!force) await this.#shape(slug, { dryRun: true, force: true })
      const { stack, plan, pointer } = await this.#shape(slug, { dryRun: false, force })
      committed(plan)
      await this.#end(superseded(slug))
      return { stack, plan, run: this.#begin(pointer) }
    })
    return { stack, plan, converged: await run.done }
  }

  /** Goes on with what an earlier run of the gateway did not get done. Does not wait for it. */
  async resume (): Promise<void> {
    const { activity, config } = this.#services
    const pointer = await readPointer(config.paths)
    if (pointer?.pending !== true) return
    this.#log.info({ stack: pointer.active_slug }, `continues to apply stack '${pointer.active_slug}'`)
    const { done } = this.#begin(pointer)
    const row = { category: 'stack', action: 'stack.resume', target: pointer.active_slug, actor: 'system' }
    void activity.audited(row, async note => { note({ message: outcomeText(await done) }) }).catch((error: unknown) => {
      this.#log.warn({ stack: pointer.active_slug, reason: messageOf(error) }, 'a stack is not fully applied yet')
    })
  }

  /** The next start goes on with what is not done. */
  async stop (): Promise<void> {
    await this.#end(svcError('gateway.stopping', 'the gateway is shutting down'))
  }

  async #end (reason: Error): Promise<void> {
    this.#run?.ending.abort(reason)
    await this.#run?.done.catch(() => undefined)
  }

  #begin (pointer: StackPointer): Run {
    const { config, slots } = this.#services
    // a gateway that has just started may still be loading what is enabled, one slot after the other
    slots.skipAutostart([...config.snapshot.slots.keys()].filter(name => !pointer.target.keep.includes(name)))
    const ending = new AbortController()
    const run = { ending, done: this.#converge(pointer, ending.signal) }
    // the caller may be gone
    run.done.catch(() => undefined)
    this.#run = run
    return run
  }

  async #converge (pointer: StackPointer, signal: AbortSignal): Promise<Converged> {
    const { config, events } = this.#services
    const converged = await converge(this.#services, pointer.target, pointer.refused, signal)
    const isGood = converged.errors.length === 0
    await config.change(async draft => {
      signal.throwIfAborted()
      const now = await readPointer(config.paths)
      if (now?.id !== pointer.id) return
      await draft.putState(POINTER_FILE, pointerText({ ...pointer, pending: false, converge_ok: isGood }))
    })
    const { active_slug: slug } = pointer
    events.emit({
      type: 'stack.converged',
      severity: isGood ? 'info' : 'warn',
      source: `stack:${slug}`,
      message: `stack ${slug}: ${outcomeText(converged)}`,
      data: { slug, ok: isGood, ...converged }
    })
    return converged
  }

  /** Again without a capability that cannot be had, until the rest of the stack is one change that the guards let pass. */
  async #shape (slug: string, { dryRun, force }: ShapeOptions): Promise<Shaped> {
    const { clock, config, overlay, providers, slots } = this.#services
    const active = await readPointer(config.paths)
    const appliedHash = active?.active_slug === slug ? active.content_hash : null
    const refused = new Map<CapabilityChild, string>()
    for (;;) {
      let refusal: CapabilityChild | null = null
      try {
        return await slots.change(async draft => {
          const stack = stackCatalog.of(draft.config).get(slug)
          if (stack === undefined) throw stackNotFound(slug)
          const plan = await shapeStack(draft, stack, {
            overlay,
            providers,
            refused,
            deviceOf: name => slots.device(name),
            appliedHash,
            isUp: name => isUp(slots, name),
            refuse: child => { refusal = child }
          })
          const broken = plan.troubles.filter(({ serves }) => serves)
          if (!force && broken.length > 0) throw wouldBreak(slug, broken)
          const pointer: StackPointer = {
            version: 1, id: randomUUID(), active_slug: slug, content_hash: plan.contentHash,
            applied_at: new Date(clock.now()).toISOString(), converge_ok: false, pending: true, target: plan.target,
            refused: [...plan.refused]
          }
          await draft.config.putState(POINTER_FILE, pointerText(pointer))
          return { stack, plan, pointer }
        }, { dryRun })
      } catch (error) {
        if (refusal === null || !isSvcError(error) || !error.code.startsWith('capability.')) throw error
        refused.set(refusal, error.message)
      }
    }
  }
}

/** For people: what was done, and what was not. Pure. */
export function outcomeText ({ loaded, swapped, reloaded, unloaded, errors }: Converged): string {
  const parts = Object.entries({ loaded, swapped, reloaded, unloaded }).filter(([, names]) => names.length > 0)
    .map(([verb, names]) => `${verb} ${names.join(', ')}`)
  const failed = errors.map(({ target, error }) => `${target} failed: ${error}`)
  return [...parts, ...failed].join('; ') || 'everything was already running'
}
