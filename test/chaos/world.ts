import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import builtins from '../../plugins/index.js'
import type { GatewayEvent } from '../../kernel/contract/index.js'
import {
  chatAnswer, chatStream, createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type EngineScript, type SeenRequest,
  type TestGateway
} from '../../kernel/testing/index.js'
import type { Random } from '../kernel/slots/random.js'

export const slots = ['agent', 'utility', 'embed', 'rerank', 'tts', 'stt', 'img'] as const
export type ChaosSlot = typeof slots[number]
export const slotTypes: Readonly<Record<ChaosSlot, string>> = {
  agent: 'llm', utility: 'llm', embed: 'embedding', rerank: 'reranking', tts: 'tts', stt: 'transcription', img: 'image'
}

export interface World {
  readonly gateway: TestGateway
  readonly runtime: FakeEngineRuntime
  readonly events: readonly GatewayEvent[]
  /** The upstream stops answering, or answers again. */
  setUpstream (up: boolean): void
  /** How engines that start from now on behave. */
  temper (temper: Temper): void
  /** Drops what the fakes keep of the requests they saw, which is no memory of the gateway's. */
  forget (): void
  close (): Promise<void>
}

/** Chances of what may go wrong while an engine comes up, and how slow its answers are, in milliseconds a piece. */
export interface Temper {
  readonly failsToStart: number
  readonly startsSlowly: number
  readonly pieceMs: number
}

const words = Array.from({ length: 20 }, (_, i) => `word${i} `)
const IMAGE = JSON.stringify({ created: 1, data: [{ b64_json: Buffer.alloc(64 * 1024, 3).toString('base64') }], _svc: {} })
const SSE = { 'content-type': 'text/event-stream' }
const JSON_TYPE = { 'content-type': 'application/json' }

/** What a healthy engine of any kind answers, in the wire format of its surface. */
export function answerOf (request: SeenRequest, pieceMs: number): EngineScript {
  const streams = request.body.includes('"stream":true')
  switch (request.url) {
    case '/v1/chat/completions':
      return streams ? { headers: SSE, chunks: chatStream(words), everyMs: pieceMs } : { headers: JSON_TYPE, headAfterMs: pieceMs * 5, chunks: [chatAnswer('Hello there')] }
    case '/v1/completions':
      return streams
        ? { headers: SSE, everyMs: pieceMs, chunks: [...words.map(text => `data: ${JSON.stringify({ choices: [{ index: 0, text, finish_reason: null }] })}\n\n`), 'data: [DONE]\n\n'] }
        : { headers: JSON_TYPE, headAfterMs: pieceMs * 5, chunks: [JSON.stringify({ object: 'text_completion', choices: [{ index: 0, text: 'hi', finish_reason: 'stop' }] })] }
    case '/v1/embeddings':
      return { headers: JSON_TYPE, headAfterMs: pieceMs, chunks: [JSON.stringify({ object: 'list', data: [{ object: 'embedding', index: 0, embedding: [0.1, 0.2] }] })] }
    case '/v1/rerank':
      return { headers: JSON_TYPE, chunks: [JSON.stringify({ results: [{ index: 0, relevance_score: 1 }] })] }
    case '/v1/audio/speech':
      return { headers: { 'content-type': 'audio/wav' }, everyMs: pieceMs, chunks: words.map(() => Buffer.alloc(4096, 7)) }
    case '/v1/images/generations':
      return { headers: JSON_TYPE, headAfterMs: pieceMs * 10, chunks: [IMAGE] }
    case '/v1/audio/transcriptions':
      return { headers: JSON_TYPE, headAfterMs: pieceMs * 3, chunks: ['{"text":"hello"}'] }
    default:
      return { status: 404, headers: JSON_TYPE, chunks: ['{"error":{"message":"no such path"}}'] }
  }
}

/**
 * The gateway as it ships, all default plugins on, seven slots on fake engines behind real sockets, two of which share
 * a GPU, and an upstream.
 */
export async function createWorld (random: Random): Promise<World> {
  let temper: Temper = { failsToStart: 0, startsSlowly: 0, pieceMs: 1 }
  const runtime = new FakeEngineRuntime({
    onStart: ({ engine }) => {
      engine.answer(request => answerOf(request, temper.pieceMs))
      if (random.chance(temper.failsToStart)) throw new Error('the engine does not feel like it')
      if (random.chance(temper.startsSlowly)) {
        engine.health(503)
        setTimeout(() => engine.health(200), 50 + random.int(400))
      }
    }
  })
  const upstream = await createUpstream()
  const device = (name: ChaosSlot): string => name === 'agent' || name === 'img' ? 'gpu-vulkan' : 'cpu'
  const slotFile = (name: ChaosSlot): string =>
    `type = "${slotTypes[name]}"\nprovider = "fake"\ndevice = "${device(name)}"\nworkers = 4\nidle_timeout_s = ${name === 'utility' ? 1 : 0}\n`
  const gateway = await createTestGateway({
    runtime,
    builtins,
    plugins: [createFakeProviderPlugin({
      surfaces: {
        chat: { path: '/v1/chat/completions', streaming: true, body: 'json' },
        completions: { path: '/v1/completions', streaming: true, body: 'json' },
        embeddings: { path: '/v1/embeddings', streaming: false, body: 'json' },
        rerank: { path: '/v1/rerank', streaming: false, body: 'json' },
        speech: { path: '/v1/audio/speech', streaming: true, body: 'json' },
        image: { path: '/v1/images/generations', streaming: false, body: 'json' },
        transcription: { path: '/v1/audio/transcriptions', streaming: true, body: 'multipart' }
      }
    })],
    log: { debug: unheard, info: unheard, warn: unheard, error: unheard },
    stopEngines: true,
    deviceNodes: ['/dev/dri/renderD128', '/dev/dri/card0'],
    files: {
      'etc/svc/svc.toml': '[slots]\nautostart = false\ndrain_timeout_s = 1\n[dispatcher]\nhold_headers_s = 0.2\nping_interval_s = 1\n',
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "remote"\nkind = "remote"\nurl = "${upstream.origin}/v1"\ntimeout_seconds = 5\n`,
      ...Object.fromEntries(slots.map(name => [`etc/svc/slots/${name}.toml`, slotFile(name)]))
    }
  })
  const events: GatewayEvent[] = []
  const watching = new AbortController()
  void (async () => {
    for await (const event of gateway.gateway.kernel().events.subscribe({ type: 'slot.*' }, watching.signal)) events.push(event)
  })().catch(() => {})
  return {
    gateway,
    runtime,
    events,
    setUpstream: upstream.set,
    temper: next => { temper = next },
    forget: () => {
      for (const { engine } of runtime.started) engine.forget()
    },
    close: async () => {
      await gateway.close()
      watching.abort()
      await runtime.destroy()
      await upstream.close()
    }
  }
}

function unheard (): void { /* a log that is kept would be taken for memory of the gateway */ }

async function createUpstream (): Promise<{ origin: string, set: (up: boolean) => void, close: () => Promise<void> }> {
  let up = true
  const server: Server = createServer((req, res) => {
    if (!up) return void res.destroy()
    if (req.url === '/v1/models') {
      res.setHeader('content-type', 'application/json')
      return void res.end('{"object":"list","data":[{"id":"far-away","object":"model"}]}')
    }
    req.resume().on('end', () => {
      res.setHeader('content-type', 'text/event-stream')
      for (const chunk of chatStream(words)) res.write(chunk)
      res.end()
    })
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    set: next => { up = next },
    close: () => new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
}
