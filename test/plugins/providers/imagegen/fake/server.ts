import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join, normalize } from 'node:path'
import { WebSocketServer, type WebSocket } from 'ws'
import { nodeTable, objectInfo } from './nodes.js'
import { decodePng } from './png.js'
import { jobRow, PromptQueue, type Pace, type SavedImage } from './queue.js'
import { validatePrompt, type PromptGraph } from './validate.js'

export interface FakeComfyOptions {
  readonly host: string
  readonly port: number
  readonly baseDirectory: string
  readonly argv: readonly string[]
  /** Knows `prompt_id` of a submission and of an interrupt; releases before 0.3.45 do not. */
  readonly knowsIds?: boolean
}

export interface FakeComfy {
  readonly port: number
  readonly queue: PromptQueue
  readonly pace: Pace
  /** Method and path of every request but health checks and control, in order. */
  readonly seen: string[]
  close (): Promise<void>
}

type Json = Readonly<Record<string, unknown>>

/**
 * ComfyUI's server as its clients see it: HTTP with and without the `/api` prefix, the WebSocket, graph validation, one
 * worker that keeps what it computed, files on disk. It computes pictures instead of images. `/__test__` is for tests alone.
 *
 * It is version 0.3.64, of which a real one was measured. Read from github.com/comfyanonymous/ComfyUI: execution.py and
 * nodes.py of autumn 2025, comfy_execution/progress.py at 54cf14c, folder_paths.py at 00db33f, comfy_execution/caching.py
 * at 025daf9; and from github.com/Comfy-Org/ComfyUI, version 0.38.1, server.py at 002c3fb and execution.py at 04e2a91,
 * which differ for a client in that an unknown node is `missing_node_type` and a `prompt_id` must be a UUID.
 */
export async function startFakeComfy (options: FakeComfyOptions): Promise<FakeComfy> {
  const pace: Pace = { stepMs: 1, holdAtStep: null, failIn: null }
  const seen: string[] = []
  const sockets = new Map<string, WebSocket>()
  const folder = (type: string): string => join(options.baseDirectory, type)
  for (const name of ['output', 'temp', 'input', 'user']) mkdirSync(folder(name), { recursive: true })
  const checkpoints = (): string[] => {
    const found = existsSync(folder('models/checkpoints')) ? readdirSync(folder('models/checkpoints')) : []
    return found.filter(name => /\.(safetensors|ckpt|pt)$/.test(name)).sort()
  }
  const pictures = (): string[] => readdirSync(folder('input')).sort()
  const queue = new PromptQueue({
    pace,
    caches: !options.argv.includes('--cache-none'),
    send: (type, data, clientId) => {
      for (const [id, socket] of sockets) if (clientId === null || id === clientId) socket.send(JSON.stringify({ type, data }))
    },
    load: name => decodePng(readFileSync(join(folder('input'), name))),
    save: ({ type, subfolder, filename }: SavedImage, png) => {
      mkdirSync(join(folder(type), subfolder), { recursive: true })
      writeFileSync(join(folder(type), subfolder, filename), png)
    },
    saved: (type, subfolder) => existsSync(join(folder(type), subfolder)) ? readdirSync(join(folder(type), subfolder)) : []
  })
  let number = 0

  const routes: Record<string, (request: IncomingMessage, url: URL, body: Json | null, res: ServerResponse) => unknown> = {
    'GET /system_stats': () => ({
      system: {
        os: 'posix', ram_total: 2 ** 36, ram_free: 2 ** 35, comfyui_version: '0.3.64', required_frontend_version: '1.28.7', python_version: '3.13.7 (main)',
        pytorch_version: '2.9.0a0+rocm7', embedded_python: false, argv: options.argv
      },
      devices: [{
        name: 'cuda:0 AMD Radeon Graphics : native', type: 'cuda', index: 0, vram_total: 2 ** 36, vram_free: 2 ** 35,
        torch_vram_total: 2 ** 33, torch_vram_free: 2 ** 32
      }]
    }),
    'GET /prompt': () => ({ exec_info: { queue_remaining: queue.remaining } }),
    'GET /object_info': () => Object.fromEntries(Object.entries(nodeTable(checkpoints(), pictures())).map(([name, node]) => [name, objectInfo(name, node)])),
    'GET /queue': () => ({ queue_running: queue.running === null ? [] : [jobRow(queue.running)], queue_pending: queue.pending.map(jobRow) }),
    'GET /history': (_, url) => {
      const max = url.searchParams.get('max_items')
      const entries = [...queue.history]
      return Object.fromEntries(max === null ? entries : entries.slice(-Number(max)))
    },
    'POST /prompt': (_, _url, body, res) => {
      if (body?.prompt === undefined) {
        return reply(res, 400, { error: { type: 'no_prompt', message: 'No prompt provided', details: 'No prompt provided', extra_info: {} }, node_errors: {} })
      }
      const graph = body.prompt as PromptGraph
      const verdict = validatePrompt(graph, nodeTable(checkpoints(), pictures()))
      const order = typeof body.number === 'number' ? body.number : body.front === true ? -(number++) : number++
      if (!verdict.valid) return reply(res, 400, { error: verdict.error, node_errors: verdict.nodeErrors })
      const given = options.knowsIds === false ? undefined : body.prompt_id
      const id = typeof given === 'string' ? given : randomUUID()
      const client = body.client_id === undefined ? {} : { client_id: body.client_id }
      const extra = { ...body.extra_data as Json | undefined, ...client }
      queue.put({ number: order, id, graph, extra, outputs: verdict.outputs })
      return { prompt_id: id, number: order, node_errors: verdict.nodeErrors }
    },
    'POST /queue': (_, _url, body) => {
      if (body?.clear === true) queue.clear()
      for (const id of body?.delete as readonly string[] | undefined ?? []) queue.remove(id)
      return null
    },
    'POST /interrupt': (_, _url, body) => {
      const id = options.knowsIds === false ? null : body?.prompt_id as string | undefined ?? null
      queue.interrupt(id)
      return null
    },
    'POST /free': (_, _url, body) => {
      for (const flag of ['unload_models', 'free_memory']) if (body?.[flag] === true) queue.flags[flag] = true
      return null
    },
    'POST /history': (_, _url, body) => {
      if (body?.clear === true) queue.history.clear()
      for (const id of body?.delete as readonly string[] | undefined ?? []) queue.history.delete(id)
      return null
    },
    'GET /models/checkpoints': () => checkpoints(),
    'GET /view': (_, url, _body, res) => {
      const name = url.searchParams.get('filename') ?? ''
      if (name === '') return reply(res, 404, null)
      if (name.startsWith('/') || name.includes('..')) return reply(res, 400, null)
      const type = url.searchParams.get('type') ?? 'output'
      if (!['output', 'input', 'temp'].includes(type)) return reply(res, 400, null)
      const within = normalize(join(folder(type), url.searchParams.get('subfolder') ?? ''))
      if (!`${within}/`.startsWith(`${folder(type)}/`)) return reply(res, 403, null)
      const path = join(within, basename(name))
      if (!existsSync(path)) return reply(res, 404, null)
      res.writeHead(200, { 'content-type': 'image/png', 'content-disposition': `filename="${basename(name)}"` }).end(readFileSync(path))
      return undefined
    }
  }

  /** Control by a test: sets the pace, releases a hold, breaks event streams, dies; tells what was seen. */
  function control (body: Json | null): Json {
    const { release, dropSockets, crash, ...settings } = body ?? {}
    Object.assign(pace, settings)
    if (release === true) queue.release()
    if (dropSockets === true) for (const socket of sockets.values()) socket.terminate()
    if (crash === true) process.kill(process.pid, 'SIGKILL')
    const { running, pending, history, flags } = queue
    return {
      pid: process.pid,
      seen,
      running: running?.id ?? null,
      pending: pending.map(job => job.id),
      history: [...history.keys()],
      flags,
      sockets: sockets.size
    }
  }

  /** Into the folder that `type` names; what is there already gets a number unless `overwrite` says otherwise. */
  async function upload (request: IncomingMessage, res: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const form = await new Response(Buffer.concat(chunks), { headers: { 'content-type': request.headers['content-type'] ?? '' } }).formData()
    const file = form.get('image')
    if (!(file instanceof File) || file.name === '') return reply(res, 400, null)
    const [type, subfolder] = [form.get('type') ?? 'input', form.get('subfolder') ?? ''].map(String) as [string, string]
    const within = normalize(join(folder(type), subfolder))
    if (!`${within}/`.startsWith(`${folder(type)}/`)) return reply(res, 400, null)
    mkdirSync(within, { recursive: true })
    writeFileSync(join(within, basename(file.name)), Buffer.from(await file.arrayBuffer()))
    reply(res, 200, { name: basename(file.name), subfolder, type })
  }

  async function handle (request: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://engine')
    const path = url.pathname.replace(/^\/api(?=\/)/, '')
    if (request.method === 'POST' && path === '/upload/image') {
      seen.push(`POST ${path}`)
      return await upload(request, res)
    }
    const text = await readText(request)
    if (path === '/__test__') return reply(res, 200, control(JSON.parse(text === '' ? '{}' : text) as Json))
    if (path !== '/system_stats') seen.push(`${request.method} ${path}`)
    if (!sameOrigin(request)) return reply(res, 403, null)
    const history = /^\/history\/([^/]+)$/.exec(path)?.[1]
    if (request.method === 'GET' && history !== undefined) {
      const entry = queue.history.get(decodeURIComponent(history))
      return reply(res, 200, entry === undefined ? {} : { [history]: entry })
    }
    const node = /^\/object_info\/([^/]+)$/.exec(path)?.[1]
    if (node !== undefined) {
      const info = nodeTable(checkpoints(), pictures())[node]
      return reply(res, 200, info === undefined ? {} : { [node]: objectInfo(node, info) })
    }
    const route = routes[`${request.method} ${path}`]
    // what has no route is looked for among the files of its page, which can only be read
    if (route === undefined) return reply(res, request.method === 'GET' || request.method === 'HEAD' ? 404 : 405, null)
    const answer = route(request, url, request.method === 'POST' ? parsed(text, path) : null, res)
    if (!res.writableEnded) reply(res, 200, answer)
  }

  const server: Server = createServer((request, res) => {
    handle(request, res).catch(() => {
      res.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end('500 Internal Server Error\n\nServer got itself in trouble')
    })
  })
  const wss = new WebSocketServer({ noServer: true })
  server.on('upgrade', (request, socket, head) => {
    const url = new URL(request.url ?? '/', 'http://engine')
    if (!/^(\/api)?\/ws$/.test(url.pathname) || !sameOrigin(request)) return socket.destroy()
    wss.handleUpgrade(request, socket, head, ws => {
      const id = url.searchParams.get('clientId') ?? randomUUID().replaceAll('-', '')
      sockets.set(id, ws)
      ws.on('close', () => { if (sockets.get(id) === ws) sockets.delete(id) })
      ws.send(JSON.stringify({ type: 'status', data: { status: { exec_info: { queue_remaining: queue.remaining } }, sid: id } }))
    })
    return undefined
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    queue,
    pace,
    seen,
    close: async () => {
      for (const socket of sockets.values()) socket.terminate()
      server.closeAllConnections()
      await new Promise<void>(resolve => { server.close(() => resolve()) })
    }
  }
}

/** A web page of another origin may not talk to an engine on this machine. */
function sameOrigin ({ headers }: IncomingMessage): boolean {
  return headers.origin === undefined || new URL(headers.origin).host === headers.host
}

async function readText (request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** Only an interrupt may come without a body. Throws, as the engine does, for what is no JSON. */
function parsed (text: string, path: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    if (path === '/interrupt') return {}
    throw error
  }
}

function reply (res: ServerResponse, status: number, json: unknown): void {
  if (json === null) res.writeHead(status).end()
  else res.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(json))
}
