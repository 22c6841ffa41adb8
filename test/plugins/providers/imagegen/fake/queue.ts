import { randomUUID } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { encodePng, type Picture } from './png.js'
import { NodeProgress } from './progress.js'
import type { PromptGraph } from './validate.js'
import { workedOn } from './worked-on.js'

export interface Job {
  readonly number: number
  readonly id: string
  readonly graph: PromptGraph
  readonly extra: Readonly<Record<string, unknown>>
  readonly outputs: readonly string[]
}

export interface SavedImage {
  readonly filename: string
  readonly subfolder: string
  readonly type: 'output' | 'temp'
}

interface HistoryEntry {
  readonly prompt: readonly unknown[]
  readonly outputs: Record<string, { images: readonly SavedImage[] }>
  readonly status: {
    readonly status_str: 'success' | 'error'
    readonly completed: boolean
    readonly messages: ReadonlyArray<readonly [string, object]>
  }
  readonly meta: object
}

/** What a test can change about the way the engine works. */
export interface Pace {
  /** Milliseconds of one sampling step. */
  stepMs: number
  /** The sampler stops at this step until it is released or interrupted; null never. */
  holdAtStep: number | null
  /** The next run fails in this node, as an out-of-memory error does. */
  failIn: string | null
}

export interface QueueDeps {
  readonly send: (type: string, data: object, clientId: string | null) => void
  readonly save: (image: SavedImage, png: Buffer) => void
  /** Names of the files in a folder of images; none where there is none. */
  readonly saved: (type: SavedImage['type'], subfolder: string) => readonly string[]
  /** A picture of the folder for them. */
  readonly load: (name: string) => Picture
  readonly pace: Pace
  /** Whether nodes that were computed are kept for the next run, as they are without `--cache-none`. */
  readonly caches: boolean
}

class Interrupted extends Error {}

class OutOfMemory extends Error {
  constructor () {
    super('HIP out of memory. Tried to allocate 2.00 GiB')
  }
}

const OUT_OF_MEMORY_TIPS = 'This error means you ran out of memory on your GPU.\n\n' +
  'TIPS: If the workflow worked before you might have accidentally set the batch_size to a large number.'

/** The engine's one worker: takes the job with the lowest number, runs its nodes in order of their links, keeps a history. */
export class PromptQueue {
  readonly #deps: QueueDeps
  readonly pending: Job[] = []
  running: Job | null = null
  readonly history = new Map<string, HistoryEntry>()
  readonly flags: Record<string, unknown> = {}
  #interrupt = false
  #wakeHold: () => void = () => {}
  /** What nodes of the last run gave, by everything that they come from. */
  #cache = new Map<string, readonly SavedImage[] | null>()
  #working = false

  constructor (deps: QueueDeps) {
    this.#deps = deps
  }

  get remaining (): number { return this.pending.length + (this.running === null ? 0 : 1) }

  put (job: Job): void {
    this.pending.push(job)
    this.#updated()
    void this.#work()
  }

  remove (id: string): void {
    const at = this.pending.findIndex(job => job.id === id)
    if (at === -1) return
    this.pending.splice(at, 1)
    this.#updated()
  }

  clear (): void {
    this.pending.length = 0
    this.#updated()
  }

  /** Null interrupts whatever runs. */
  interrupt (id: string | null): boolean {
    if (this.running === null || (id !== null && this.running.id !== id)) return false
    this.#interrupt = true
    this.#wakeHold()
    return true
  }

  /** Ends a hold of `Pace.holdAtStep`. */
  release (): void {
    this.#deps.pace.holdAtStep = null
    this.#wakeHold()
  }

  async #work (): Promise<void> {
    if (this.#working) return
    this.#working = true
    // the worker is a thread of its own: a submission has been answered before it begins
    await delay(1)
    for (let job = this.#next(); job !== undefined; job = this.#next()) {
      this.running = job
      this.#interrupt = false
      this.#updated()
      const entry = await this.#run(job)
      this.running = null
      this.history.set(job.id, entry)
      this.#updated()
      if (clientOf(job) !== null) this.#deps.send('executing', { node: null, prompt_id: job.id }, clientOf(job))
    }
    this.#working = false
  }

  #next (): Job | undefined {
    this.pending.sort((a, b) => a.number - b.number)
    return this.pending.shift()
  }

  async #run (job: Job): Promise<HistoryEntry> {
    const { send, pace } = this.#deps
    const messages: Array<readonly [string, object]> = []
    const client = clientOf(job)
    const message = (type: string, data: object): void => {
      const stamped = { ...data, timestamp: Date.now() }
      messages.push([type, stamped])
      if (client !== null) send(type, stamped, client)
    }
    const tell = (type: string, data: object): void => { if (client !== null) send(type, { ...data, prompt_id: job.id }, client) }
    const outputs: HistoryEntry['outputs'] = {}
    const executed: string[] = []
    const progress = new NodeProgress(job.id, send)
    let current = ''
    message('execution_start', { prompt_id: job.id })
    const known = this.#cache
    const isCached = (id: string): boolean => known.has(signature(job.graph, id))
    // what is of no use to this graph goes, whether it runs or not
    const cached = Object.keys(job.graph).filter(isCached)
    this.#cache = new Map(cached.map(id => signature(job.graph, id)).map(key => [key, known.get(key) ?? null]))
    message('execution_cached', { nodes: cached, prompt_id: job.id })
    // the images of a node that is not run again are those of the time when it ran
    for (const id of cached) {
      const images = known.get(signature(job.graph, id)) ?? null
      if (images !== null) outputs[id] = { images }
    }
    try {
      for (const id of order(job, isCached)) {
        current = id
        if (isCached(id)) {
          tell('executed', { node: id, display_node: id, output: outputs[id] ?? null })
          progress.finish(id)
          continue
        }
        progress.start(id)
        tell('executing', { node: id, display_node: id })
        this.#throwIfInterrupted()
        const type = job.graph[id]!.class_type!
        if (pace.failIn === type) {
          pace.failIn = null
          throw new OutOfMemory()
        }
        if (type === 'KSampler' || type === 'SamplerCustom') await this.#sample(job, id, progress)
        const saves = type === 'SaveImage' || type === 'PreviewImage'
        const images = saves ? this.#saveImages(job, id) : null
        if (images !== null) {
          outputs[id] = { images }
          tell('executed', { node: id, display_node: id, output: { images } })
        }
        if (this.#deps.caches) this.#cache.set(signature(job.graph, id), images)
        progress.finish(id)
        executed.push(id)
      }
      message('execution_success', { prompt_id: job.id })
      return entry(job, outputs, { status_str: 'success', completed: true, messages })
    } catch (error) {
      const where = { prompt_id: job.id, node_id: current, node_type: job.graph[current]?.class_type, executed }
      if (error instanceof Interrupted) message('execution_interrupted', where)
      else {
        // a line of tips below every message, which is empty but for this one
        const tips = error instanceof OutOfMemory ? OUT_OF_MEMORY_TIPS : ''
        message('execution_error', {
          ...where,
          exception_message: `${(error as Error).message}\n${tips}`,
          exception_type: 'torch.OutOfMemoryError',
          traceback: [],
          current_inputs: {},
          current_outputs: Object.keys(job.graph)
        })
      }
      return entry(job, outputs, { status_str: 'error', completed: false, messages })
    }
  }

  async #sample (job: Job, id: string, progress: NodeProgress): Promise<void> {
    const { send, pace } = this.#deps
    const { inputs } = job.graph[id]!
    const max = Number(inputs.steps ?? linked(job, inputs.sigmas)?.inputs.steps)
    for (let value = 1; value <= max; value++) {
      if (pace.holdAtStep === value) await new Promise<void>(resolve => { this.#wakeHold = resolve })
      await delay(pace.stepMs)
      this.#throwIfInterrupted()
      progress.update(id, value, max)
      send('progress', { value, max, prompt_id: job.id, node: id }, clientOf(job))
    }
  }

  #saveImages (job: Job, id: string): SavedImage[] {
    const { inputs, class_type: type } = job.graph[id]!
    const nodes = Object.values(job.graph)
    const given = workedOn(job.graph, this.#deps.load)
    const latent = nodes.find(node => node.class_type === 'EmptyLatentImage')?.inputs ??
      { width: given!.width, height: given!.height, batch_size: given!.count }
    const sampler = nodes.find(node => node.class_type === 'KSampler' || node.class_type === 'SamplerCustom')!.inputs
    const seed = Number(sampler.seed ?? sampler.noise_seed)
    const prefix = type === 'SaveImage' ? String(inputs.filename_prefix) : `ComfyUI_temp_${randomUUID().slice(0, 5)}`
    const images: SavedImage[] = []
    // the engine works on eighths of the size
    const width = Math.floor(Number(latent.width) / 8) * 8
    const height = Math.floor(Number(latent.height) / 8) * 8
    const kind = type === 'SaveImage' ? 'output' : 'temp'
    const subfolder = dirname(prefix) === '.' ? '' : dirname(prefix)
    const name = basename(prefix)
    // as many as there are in the folder: a name is free again once its file is gone
    const numbers = this.#deps.saved(kind, subfolder).filter(file => file.startsWith(`${name}_`)).map(file => Number.parseInt(file.slice(name.length + 1), 10) || 0)
    let counter = Math.max(0, ...numbers)
    for (let i = 0; i < Number(latent.batch_size); i++) {
      const image: SavedImage = { filename: `${name}_${String(++counter).padStart(5, '0')}_.png`, subfolder, type: kind }
      const drawn = picture(width, height, seed + i)
      this.#deps.save(image, encodePng(given === null ? drawn : given.pixels(drawn), { prompt: asciiJson(job.graph) }))
      images.push(image)
    }
    return images
  }

  #throwIfInterrupted (): void {
    if (!this.#interrupt) return
    this.#interrupt = false
    throw new Interrupted()
  }

  #updated (): void {
    this.#deps.send('status', { status: { exec_info: { queue_remaining: this.remaining } } }, null)
  }
}

/** As `/queue` and the history have it. */
export function jobRow (job: Job): readonly unknown[] {
  return [job.number, job.id, job.graph, job.extra, job.outputs]
}

function entry (job: Job, outputs: HistoryEntry['outputs'], status: HistoryEntry['status']): HistoryEntry {
  const describe = (id: string): object => ({ node_id: id, display_node: id, parent_node: null, real_node_id: id })
  const meta = Object.fromEntries(Object.keys(outputs).map(id => [id, describe(id)]))
  return { prompt: jobRow(job), outputs, status, meta }
}

function clientOf (job: Job): string | null {
  return typeof job.extra.client_id === 'string' ? job.extra.client_id : null
}

/** Every node that the outputs need, after those it is linked to; nothing is needed for one whose result is there. */
function order ({ graph, outputs }: Job, isCached: (id: string) => boolean): string[] {
  const done: string[] = []
  const visit = (id: string): void => {
    if (done.includes(id)) return
    if (!isCached(id)) for (const value of Object.values(graph[id]!.inputs)) if (Array.isArray(value)) visit(String(value[0]))
    done.push(id)
  }
  for (const id of outputs) visit(id)
  return done
}

/** All that the result of a node comes from. */
function signature (graph: PromptGraph, id: string): string {
  const { class_type: type, inputs } = graph[id]!
  return JSON.stringify([type, Object.entries(inputs).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([name, value]) => [name, Array.isArray(value) ? [signature(graph, String(value[0])), value[1] as unknown] : value])])
}

function linked ({ graph }: Job, value: unknown): PromptGraph[string] | undefined {
  return Array.isArray(value) ? graph[String(value[0])] : undefined
}

/** As Python writes it, where a text chunk knows no other letters. */
function asciiJson (value: unknown): string {
  return JSON.stringify(value).replace(/[\u0080-\uffff]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** A picture that depends on nothing but its size and its seed. */
function picture (width: number, height: number, seed: number): { width: number, height: number, rgb: Buffer } {
  const rgb = Buffer.alloc(width * height * 3)
  for (let i = 0; i < rgb.length; i++) rgb[i] = (i / 7 + seed * 31) & 0xff
  return { width, height, rgb }
}

function delay (ms: number): Promise<void> {
  return new Promise(resolve => { setTimeout(resolve, ms) })
}
