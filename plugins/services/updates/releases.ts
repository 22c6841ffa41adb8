import {
  isSvcError, messageOf, settingsOf, type Clock, type ConfigService, type GatewayInfo, type Installation, type Logger, type Timer
} from 'svc-gateway/plugin'
import type { Channel } from './channel-names.js'
import { findRelease, type FoundRelease } from './channel.js'
import { decide, type Decision } from './decision.js'
import { readPins, type Pins } from './pins.js'
import type { UpdateCheck, Updates } from './ref.js'
import { telemetrySettings, type UpdatesConfig } from './settings.js'
import { standingOf, type Standing } from './standing.js'
import { ReleaseTransport } from './transport.js'

export interface ReleasesDeps {
  readonly clock: Clock
  readonly config: ConfigService
  readonly info: GatewayInfo
  readonly installation: Installation
  readonly log: Logger
  readonly settings: UpdatesConfig
}

/** The first one waits until the start is over. */
const FIRST_CHECK_MS = 60_000
const DAY_MS = 24 * 60 * 60 * 1000

export type JudgedRelease = FoundRelease & { readonly decision: Decision }

/** What the channel has, and what that means here. */
export class Releases implements Pick<Updates, 'available' | 'autoCheck' | 'channel' | 'check' | 'standing'> {
  readonly transport: ReleaseTransport
  readonly #deps: ReleasesDeps
  readonly #stop = new AbortController()
  #timer: Timer | null = null
  #available: string | null = null

  constructor (deps: ReleasesDeps) {
    this.#deps = deps
    this.transport = new ReleaseTransport(name => this.#deps.config.secret(name))
  }

  get available (): string | null { return this.#available }
  get autoCheck (): boolean { return this.#deps.settings.auto_check }
  get channel (): Channel { return settingsOf(this.#deps.config.snapshot.svc, telemetrySettings).channel }

  standing (): Promise<Standing> {
    const { env, pid, ppid } = process
    return standingOf({ root: this.#deps.installation.root, env, pid, ppid })
  }

  pins (): Promise<Pins> {
    return readPins(this.#deps.installation.root, this.#deps.settings)
  }

  async check (target: string | null, signal: AbortSignal): Promise<UpdateCheck> {
    const { manifest, manifestUrl, decision } = await this.find(target, signal)
    return {
      current: this.#deps.info.version,
      latest: manifest.version,
      channel: this.channel,
      available: decision.kind === 'available',
      blocked: decision.kind === 'refused' ? decision.why : null,
      manifestUrl,
      manifest
    }
  }

  /** As `check`, with what it takes to install it. */
  async find (target: string | null, signal: AbortSignal): Promise<JudgedRelease> {
    const { info, config } = this.#deps
    const { channel } = this
    const { releasesUrl: folder } = await this.pins()
    const override = config.secret('SVC_RELEASES_URL') ?? ''
    const either = AbortSignal.any([signal, this.#stop.signal])
    const found = await findRelease(this.transport, { override, folder, channel, target }, either)
    const { version: current } = info
    const platform = `${process.platform}-${process.arch}`
    const decision = decide({ current, platform, manifest: found.manifest, target })
    if (target === null) this.#available = decision.kind === 'available' ? found.manifest.version : null
    return { ...found, decision }
  }

  /** Asks once a day, where a newer release could be installed and it is known whom to ask. */
  async start (): Promise<void> {
    if (!this.autoCheck || (await this.standing()).kind !== 'tree') return
    const { releasesUrl } = await this.pins()
    if (releasesUrl !== '' || this.#deps.config.secret('SVC_RELEASES_URL') !== undefined) this.#askAfter(FIRST_CHECK_MS)
  }

  async close (): Promise<void> {
    this.#timer?.cancel()
    this.#stop.abort()
    await this.transport.close()
  }

  #askAfter (ms: number): void {
    if (this.#stop.signal.aborted) return
    this.#timer = this.#deps.clock.setTimer(ms, () => {
      void this.#ask().finally(() => this.#askAfter(DAY_MS))
    })
  }

  async #ask (): Promise<void> {
    const { log, info } = this.#deps
    const before = this.#available
    try {
      await this.find(null, this.#stop.signal)
    } catch (error) {
      const told = isSvcError(error) ? { code: error.code } : { err: error }
      if (!this.#stop.signal.aborted) log.warn(told, `the daily check for a newer release failed: ${messageOf(error)}`)
      return
    }
    const found = this.#available
    if (found !== null && found !== before) log.info({ current: info.version, available: found }, `release ${found} is available: svc update installs it`)
  }
}
