import { SerialQueue } from 'svc-gateway/plugin'
import { modelError } from './errors.js'
import { spaceRefusal, type ReadDisk } from './file/disk.js'
import type { PullTask } from './pull-task.js'
import type { PullWork } from './pull-work.js'
import type { PullConfig } from './settings.js'

export interface AdmissionDeps {
  readonly readDisk: ReadDisk
  readonly config: Pick<PullConfig, 'reserve_mb'>
}

const MIB = 1024 * 1024

/** Whether a pull may begin beside those that are under way: with room on the disk, at places of its own. */
export class Admission {
  readonly #deps: AdmissionDeps
  readonly #tasks: ReadonlyMap<string, PullTask>
  readonly #line = new SerialQueue()

  /** @param tasks by model id; those that are over do not count */
  constructor (deps: AdmissionDeps, tasks: ReadonlyMap<string, PullTask>) {
    this.#deps = deps
    this.#tasks = tasks
  }

  /** One after the other: what one pull was promised counts for the next. */
  inTurn<T> (work: () => Promise<T>): Promise<T> {
    return this.#line.run(work)
  }

  /** Throws `model.insufficient_disk`. */
  async requireSpace ({ folder, bytesToGo }: PullWork): Promise<void> {
    const { readDisk, config } = this.#deps
    const disk = await readDisk(folder)
    const others = [...this.#tasks.values()].filter(other => !other.isOver)
    const promised = (await Promise.all(others.map(async ({ work }) => {
      const { device } = await readDisk(work.folder)
      return device === disk.device ? work.bytesToGo : 0
    }))).reduce((sum, bytes) => sum + bytes, 0)
    const refusal = spaceRefusal(folder, disk, {
      neededBytes: bytesToGo, promisedBytes: promised, reserveBytes: config.reserve_mb * MIB
    })
    if (refusal !== null) throw refusal
  }

  /** Throws `model.pull_conflict`. */
  requireOwnPlaces (modelId: string, work: PullWork): void {
    const places = new Set(work.places.map(place => place.toLowerCase()))
    for (const [other, task] of this.#tasks) {
      if (other === modelId || task.isOver) continue
      const same = task.work.places.find(place => places.has(place.toLowerCase()))
      if (same !== undefined) throw pullConflict(modelId, `the pull of '${other}' writes ${same}`)
    }
  }
}

export function pullConflict (modelId: string, why: string): Error {
  return modelError('model.pull_conflict', `'${modelId}' is not pulled: ${why}; wait for it or cancel it, or choose another id`, { details: { model: modelId } })
}
