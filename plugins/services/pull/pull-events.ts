import type { EventBus } from 'svc-gateway/plugin'
import type { PullSnapshot } from './ref.js'

/** Tells the bus how a pull goes: its beginning, every tenth of the way, its end. */
export class PullEvents {
  readonly #events: EventBus
  #tenth = 0

  constructor (events: EventBus) {
    this.#events = events
  }

  queued ({ model_id, source, hf_repo, hf_file, bytes_total, bytes_downloaded }: PullSnapshot): void {
    this.#tenth = tenthOf(bytes_downloaded, bytes_total)
    const from = bytes_downloaded > 0 ? `, ${bytes_downloaded} already downloaded` : ''
    const isHub = hf_repo !== ''
    this.#emit('queued', model_id, `${model_id}: ${isHub ? `${hf_file} of ${hf_repo}` : `by ${source}`}, ${bytes_total} bytes${from}`, {
      model_id, ...isHub ? { hf_repo, hf_file } : { source }, total: bytes_total, downloaded: bytes_downloaded
    })
  }

  /** Called with every piece that comes: the snapshot is made when there is something to tell. */
  progress (done: number, total: number, snapshot: () => PullSnapshot): void {
    const tenth = tenthOf(done, total)
    if (tenth <= this.#tenth) return
    this.#tenth = tenth
    const { model_id, bytes_downloaded: downloaded, speed_bps, eta_s } = snapshot()
    const pct = Math.floor(downloaded / total * 100)
    this.#emit('progress', model_id, `${model_id}: ${pct} %`, { model_id, downloaded, total, pct, speed_bps, eta_s })
  }

  ended (snapshot: PullSnapshot): void {
    const { model_id, state, bytes_downloaded: downloaded, bytes_total: total, sha256, path, error, error_code } = snapshot
    if (state === 'completed') this.#emit('completed', model_id, `${model_id} is complete`, { model_id, downloaded, total, sha256, path })
    else if (state === 'failed') this.#emit('failed', model_id, `${model_id}: ${error ?? 'failed'}`, { model_id, error, error_code })
    else this.#emit('cancelled', model_id, `${model_id}: the pull was cancelled`, { model_id })
  }

  #emit (what: string, modelId: string, message: string, data: Readonly<Record<string, unknown>>): void {
    const severity = what === 'failed' ? 'error' : what === 'cancelled' ? 'warn' : 'info'
    this.#events.emit({ type: `pull.${what}`, severity, source: `pull:${modelId}`, message, data })
  }
}

function tenthOf (done: number, total: number): number {
  return total === 0 ? 0 : Math.floor(done / total * 10)
}
