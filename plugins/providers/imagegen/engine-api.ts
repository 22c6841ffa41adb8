import { svcError, type EngineClient } from 'svc-gateway/plugin'
import { z } from 'zod'
import { promptRefused } from './engine-errors.js'
import { historyEntrySchema, type HistoryEntry, type ImageFile } from './history-entry.js'
import type { Graph } from './workflow.js'

/** ComfyUI's answers, as far as they are used. */
const submittedSchema = z.looseObject({ prompt_id: z.string(), node_errors: z.record(z.string(), z.unknown()).default({}) })

const uploadedSchema = z.looseObject({ name: z.string().min(1), subfolder: z.string().default('') })

const historySchema = z.record(z.string(), historyEntrySchema)

/** Jobs are lists: number, prompt id, graph and more. */
const jobSchema = z.tuple([z.number(), z.string()], z.unknown())
const queueSchema = z.looseObject({ queue_running: z.array(jobSchema), queue_pending: z.array(jobSchema) })

const statsSchema = z.looseObject({
  system: z.looseObject({
    comfyui_version: z.string().optional(), ram_total: z.number().optional(), ram_free: z.number().optional()
  }),
  devices: z.array(z.looseObject({
    name: z.string(), type: z.string(), vram_total: z.number().optional(), vram_free: z.number().optional()
  })).default([])
})
export type SystemStats = z.output<typeof statsSchema>

export interface EngineQueue {
  readonly running: readonly string[]
  /** Next one first. */
  readonly pending: readonly string[]
}

const LONGEST_IMAGE_BYTES = 128 * 1024 * 1024

/**
 * ComfyUI's HTTP interface, bound to one running engine. Everything throws `dispatch.upstream_failed` for an answer that
 * is not as documented, and what the client throws when the engine cannot be reached.
 */
export class ComfyUi {
  readonly #client: EngineClient

  constructor (client: EngineClient) {
    this.#client = client
  }

  /** Queues a graph. Throws what the engine finds wrong with it. Returns the id that the engine gave it, ours if it can. */
  async submit (
    graph: Graph, { clientId, promptId }: { readonly clientId: string, readonly promptId: string }, signal: AbortSignal
  ): Promise<string> {
    const body = { prompt: graph, client_id: clientId, prompt_id: promptId }
    const answer = await this.#client.request({ method: 'POST', path: '/prompt', body, signal })
    const text = answer.text()
    if (answer.status !== 200 && answer.status !== 400) {
      await text
      throw unexpected('/prompt', answer.status)
    }
    const json = await readJson(text, '/prompt')
    if (answer.status === 400) throw promptRefused(json)
    const { prompt_id: id, node_errors: errors } = parse(submittedSchema, json, '/prompt')
    // some of its outputs are fine and run; the ones with errors never come
    if (Object.keys(errors).length > 0) throw promptRefused(json)
    return id
  }

  /** Null as long as the prompt waits or runs, and for an unknown one. */
  async history (promptId: string, signal: AbortSignal): Promise<HistoryEntry | null> {
    const json = await this.#get(`/history/${encodeURIComponent(promptId)}`, signal)
    return parse(historySchema, json, '/history')[promptId] ?? null
  }

  /** Newest first. */
  async recent (count: number, signal: AbortSignal): Promise<readonly HistoryEntry[]> {
    return Object.values(parse(historySchema, await this.#get(`/history?max_items=${count}`, signal), '/history')).reverse()
  }

  async queue (signal: AbortSignal): Promise<EngineQueue> {
    const { queue_running: running, queue_pending: pending } = parse(queueSchema, await this.#get('/queue', signal), '/queue')
    const byNumber = [...pending].sort((a, b) => a[0] - b[0])
    return { running: running.map(job => job[1]), pending: byNumber.map(job => job[1]) }
  }

  async image (file: ImageFile, signal: AbortSignal): Promise<Buffer> {
    const query = new URLSearchParams({ filename: file.filename, subfolder: file.subfolder, type: file.type })
    const answer = await this.#client.request({ path: `/view?${query.toString()}`, signal })
    const chunks: Buffer[] = []
    let size = 0
    for await (const chunk of answer.body) {
      size += chunk.length
      if (size > LONGEST_IMAGE_BYTES) throw svcError('dispatch.upstream_failed', 'an image of the engine is larger than 128 MiB')
      chunks.push(chunk)
    }
    if (answer.status !== 200) throw unexpected('/view', answer.status)
    return Buffer.concat(chunks)
  }

  /** Puts a picture into the engine's folder for them. Returns what the engine calls it. */
  async upload (name: string, picture: Buffer, signal: AbortSignal): Promise<string> {
    const form = new FormData()
    form.append('image', new Blob([new Uint8Array(picture)]), name)
    form.append('type', 'input')
    form.append('overwrite', 'true')
    const encoded = new Response(form)
    const headers = { 'content-type': encoded.headers.get('content-type')! }
    const body = Buffer.from(await encoded.arrayBuffer())
    const answer = await this.#client.request({ method: 'POST', path: '/upload/image', headers, body, signal })
    const text = answer.text()
    if (answer.status !== 200) {
      await text
      throw unexpected('/upload/image', answer.status)
    }
    const { name: stored, subfolder } = parse(uploadedSchema, await readJson(text, '/upload/image'), '/upload/image')
    return subfolder === '' ? stored : `${subfolder}/${stored}`
  }

  /** Takes one prompt out, wherever it is. An older engine interrupts whatever runs, so it is asked only when ours does. */
  async cancel (promptId: string, signal: AbortSignal): Promise<void> {
    await this.#post('/queue', { delete: [promptId] }, signal)
    if ((await this.queue(signal)).running.includes(promptId)) await this.#post('/interrupt', { prompt_id: promptId }, signal)
  }

  /** Empties the queue and ends what runs. */
  async cancelAll (signal: AbortSignal): Promise<void> {
    await this.#post('/queue', { clear: true }, signal)
    await this.#post('/interrupt', {}, signal)
  }

  /** Drops models and caches, once the engine is idle. */
  free (signal: AbortSignal): Promise<void> {
    return this.#post('/free', { unload_models: true, free_memory: true }, signal)
  }

  async stats (signal: AbortSignal): Promise<SystemStats> {
    return parse(statsSchema, await this.#get('/system_stats', signal), '/system_stats')
  }

  async #get (path: string, signal: AbortSignal): Promise<unknown> {
    const answer = await this.#client.request({ path, signal })
    const text = answer.text()
    if (answer.status !== 200) {
      await text
      throw unexpected(path, answer.status)
    }
    return await readJson(text, path)
  }

  async #post (path: string, body: object, signal: AbortSignal): Promise<void> {
    const answer = await this.#client.request({ method: 'POST', path, body, signal })
    await answer.text()
    if (answer.status !== 200) throw unexpected(path, answer.status)
  }
}

async function readJson (text: Promise<string>, path: string): Promise<unknown> {
  const read = await text
  try {
    return JSON.parse(read) as unknown
  } catch (error) {
    throw svcError('dispatch.upstream_failed', `the image engine answered ${path} with something that is not JSON`, { cause: error })
  }
}

function parse<T extends z.ZodType> (schema: T, json: unknown, path: string): z.output<T> {
  const parsed = schema.safeParse(json)
  if (parsed.success) return parsed.data
  throw svcError('dispatch.upstream_failed', `the image engine answered ${path} in an unknown shape: ${z.prettifyError(parsed.error)}`)
}

function unexpected (path: string, status: number): Error {
  return svcError('dispatch.upstream_failed', `the image engine answered ${path} with status ${status}`, { details: { engine_status: status } })
}
