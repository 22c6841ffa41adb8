import type { PullProgress } from '../../contract/provider/engine-runtime.js'

/** One line of a pull as Docker and Podman send it. */
export interface PullLine {
  readonly id?: unknown
  readonly status?: unknown
  readonly progressDetail?: { readonly current?: unknown, readonly total?: unknown } | null
  readonly error?: unknown
  readonly errorDetail?: { readonly message?: unknown } | null
}

interface Layer {
  current: number
  total: number
  done: boolean
}

const DONE = ['Pull complete', 'Already exists']
const FETCHED = ['Download complete', 'Verifying Checksum', 'Extracting']
const LAYER_STATES = new Set(['Pulling fs layer', 'Waiting', 'Downloading', 'Retrying', ...FETCHED, ...DONE])

/**
 * Adds the layers of one pull up. Bytes count what is fetched, not what is unpacked, so they never go back unless
 * the engine fetches a layer again. `podman`: a layer is finished when it is fetched, because it says no more.
 */
export class PullTally {
  readonly #layers = new Map<string, Layer>()
  readonly #kind: 'docker' | 'podman'
  #last = ''

  constructor (kind: 'docker' | 'podman') {
    this.#kind = kind
  }

  /** The new sum, or null when the line changes nothing. */
  add (line: PullLine): PullProgress | null {
    const status = typeof line.status === 'string' ? line.status : ''
    if (status === '') return null
    if (typeof line.id === 'string' && isLayerState(status)) this.#update(line.id, status, line)
    const layers = [...this.#layers.values()]
    const progress = {
      layer: layers.filter(layer => layer.done).length,
      totalLayers: layers.length,
      currentBytes: layers.reduce((sum, layer) => sum + layer.current, 0),
      totalBytes: layers.reduce((sum, layer) => sum + layer.total, 0),
      message: typeof line.id === 'string' && isLayerState(status) ? `${line.id}: ${status}` : status
    }
    const fingerprint = JSON.stringify(progress)
    if (fingerprint === this.#last) return null
    this.#last = fingerprint
    return progress
  }

  #update (id: string, status: string, line: PullLine): void {
    const layer = this.#layers.get(id) ?? { current: 0, total: 0, done: false }
    this.#layers.set(id, layer)
    const { current, total } = line.progressDetail ?? {}
    if (typeof total === 'number' && total > layer.total) layer.total = total
    if (status === 'Downloading' && typeof current === 'number') {
      layer.current = current
      layer.total = Math.max(layer.total, current)
    }
    const done = DONE.includes(status) || (this.#kind === 'podman' && status === 'Download complete')
    if (done || FETCHED.includes(status)) layer.current = layer.total
    if (done) layer.done = true
  }
}

/** What went wrong, when the line says so. An engine reports it so after it has answered with status 200. */
export function pullErrorOf (line: PullLine): string | null {
  const detail = line.errorDetail?.message
  if (typeof detail === 'string' && detail !== '') return detail
  return typeof line.error === 'string' && line.error !== '' ? line.error : null
}

function isLayerState (status: string): boolean {
  return LAYER_STATES.has(status) || status.startsWith('Retrying in')
}
