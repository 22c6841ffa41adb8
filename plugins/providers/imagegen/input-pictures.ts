import type { Clock, EngineClient } from 'svc-gateway/plugin'
import { unlink } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { bounded, CALL_TIMEOUT_MS } from './bounded.js'
import { ComfyUi } from './engine-api.js'
import type { Picture, RenderRequest, SentPictures } from './request.js'

/**
 * The pictures of one run in the engine's folder for them. The engine has no call that removes one: its folder is on this
 * host.
 */
export class InputPictures {
  readonly #engine: ComfyUi
  readonly #clock: Clock
  readonly #folder: string
  readonly #names: string[] = []

  constructor (client: EngineClient, clock: Clock, folder: string) {
    this.#engine = new ComfyUi(client)
    this.#clock = clock
    this.#folder = folder
  }

  /** Gives the engine what a request brings. */
  async send ({ image, mask }: RenderRequest, prefix: string, signal: AbortSignal): Promise<SentPictures> {
    if (image === undefined || image === null) return {}
    const sent = { image: await this.#put(image, `${prefix}-image`, signal) }
    return mask === undefined || mask === null ? sent : { ...sent, mask: await this.#put(mask, `${prefix}-mask`, signal) }
  }

  /** Takes them away again, also one whose upload was cut off. Never rejects: what is on another host stays. */
  async remove (): Promise<void> {
    await Promise.all(this.#names.map(name => unlink(join(this.#folder, basename(name))).catch(() => {
      // never written, or not in a folder of this host
    })))
  }

  async #put ({ format, base64 }: Picture, name: string, signal: AbortSignal): Promise<string> {
    const file = `${name}.${format}`
    this.#names.push(file)
    const stored = await bounded(this.#clock, CALL_TIMEOUT_MS, signal, call =>
      this.#engine.upload(file, Buffer.from(base64, 'base64'), call))
    if (stored !== file) this.#names.push(stored)
    return stored
  }
}
