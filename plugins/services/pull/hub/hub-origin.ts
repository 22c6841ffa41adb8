import type { Clock, Logger, ModelRegistry } from 'svc-gateway/plugin'
import type { HubClient } from '../../hub/ref.js'
import type { ModelLibrary } from '../../library/ref.js'
import { FileHashes } from '../file/file-hash.js'
import { HubWork } from './hub-work.js'
import { bootId } from '../file/part-file.js'
import { planPull } from './plan.js'
import { bytesThere, type RunDeps } from '../pull-run.js'
import type { PullOrigin, PullWork } from '../pull-work.js'
import type { HubRecord } from '../record.js'
import type { PullRequest } from '../ref.js'
import { registerPulled, writeMeta } from './register.js'
import type { PullConfig } from '../settings.js'

export interface HubOriginDeps {
  readonly clock: Clock
  readonly hub: HubClient
  readonly library: ModelLibrary
  readonly models: ModelRegistry
  readonly log: Logger
  readonly config: PullConfig
  readonly instance: () => string
  readonly imageModels: string
}

/** The model hub: files of a repository, downloaded here. */
export class HubOrigin implements PullOrigin<HubRecord> {
  readonly #deps: HubOriginDeps
  readonly #hashes = new FileHashes()
  #boot: Promise<string> | null = null

  constructor (deps: HubOriginDeps) {
    this.#deps = deps
  }

  plan (request: PullRequest, signal: AbortSignal): Promise<HubRecord> {
    return planPull({ ...this.#deps, instance: this.#deps.instance() }, request, signal)
  }

  async work (modelId: string, record: HubRecord): Promise<PullWork> {
    const boot = await (this.#boot ??= bootId())
    const there = await bytesThere(record, boot)
    return new HubWork({
      run: this.#runDeps(boot),
      register: (done, signal) => this.#register(modelId, done, signal)
    }, record, there)
  }

  async close (): Promise<void> {
    await this.#hashes.close()
  }

  #runDeps (boot: string): RunDeps {
    const { hub, clock, log, config } = this.#deps
    return {
      hub,
      clock,
      log,
      boot,
      hashes: this.#hashes,
      parallelFiles: config.parallel_files,
      stallMs: config.stall_timeout_s * 1000,
      rules: { maxTries: config.max_tries, baseS: config.retry_base_s, random: Math.random }
    }
  }

  async #register (modelId: string, done: HubRecord, signal: AbortSignal): Promise<void> {
    const { models, log } = this.#deps
    await registerPulled(this.#deps, modelId, done, signal)
    await writeMeta(models, modelId, done, models.get(modelId)?.quant ?? '').catch((error: unknown) => {
      log.warn({ model: modelId, err: error }, 'meta.json is not written')
    })
  }
}
