import { stat } from 'node:fs/promises'
import { settlesWithin, type Clock, type Model, type ModelRegistry } from 'svc-gateway/plugin'

const LOOK_EVERY_MS = 2_000
/** Files that are asked for at once: a slow disk gets no thousands of questions. */
const AT_ONCE = 64
/** A disk that hangs must not keep a list waiting: what was known stands. */
const PATIENCE_MS = 1_000

/** Which registered models have lost their file. */
export class MissingFiles {
  readonly #clock: Clock
  readonly #models: Pick<ModelRegistry, 'list'>
  #of: readonly Model[] | null = null
  #lookedAt = -Infinity
  #known: ReadonlySet<string> = new Set()
  #looking: Promise<unknown> | null = null

  constructor (clock: Clock, models: Pick<ModelRegistry, 'list'>) {
    this.#clock = clock
    this.#models = models
  }

  async ids (): Promise<ReadonlySet<string>> {
    const models = this.#models.list()
    const isFresh = this.#of === models && this.#clock.monotonic() - this.#lookedAt < LOOK_EVERY_MS
    if (!isFresh) {
      this.#looking ??= this.#look(models).finally(() => { this.#looking = null })
      await settlesWithin(this.#clock, PATIENCE_MS, this.#looking)
    }
    return this.#known
  }

  async #look (models: readonly Model[]): Promise<void> {
    const gone: string[] = []
    for (let i = 0; i < models.length; i += AT_ONCE) {
      const some = models.slice(i, i + AT_ONCE)
      const there = await Promise.all(some.map(({ path }) => stat(path).then(() => true, (error: NodeJS.ErrnoException) => error.code === 'EACCES')))
      gone.push(...some.filter((_, k) => !there[k]).map(({ id }) => id))
    }
    this.#of = models
    this.#lookedAt = this.#clock.monotonic()
    const isSame = gone.length === this.#known.size && gone.every(id => this.#known.has(id))
    if (!isSame) this.#known = new Set(gone)
  }
}
