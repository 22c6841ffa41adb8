import { runClients, type ClientCall, type ClientsResult } from './clients.js'
import type { Bar } from './lists.js'
import { atLeast } from './plain.js'
import type { BenchServer } from './servers.js'

/** One kind of request whose body or answer is large. */
export interface SurfaceLoad extends ClientCall {
  readonly name: string
  /** Clients, each with one request at a time. */
  readonly clients: number
}

const BOUNDARY = 'svc-bench-boundary'
const MIB = 1024 * 1024
const CLIENTS = 4

function json (name: string, path: string, body: object, clients = CLIENTS): SurfaceLoad {
  return { name, path, contentType: 'application/json', body: Buffer.from(JSON.stringify(body)), clients }
}

function upload (name: string, modelFirst: boolean): SurfaceLoad {
  const model = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="model"\r\n\r\nstt\r\n`
  const file = Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n`),
    Buffer.alloc(20 * MIB, 7),
    Buffer.from('\r\n')
  ])
  const parts = modelFirst ? [Buffer.from(model), file] : [file, Buffer.from(model)]
  return {
    name,
    path: '/v1/audio/transcriptions',
    contentType: `multipart/form-data; boundary=${BOUNDARY}`,
    body: Buffer.concat([...parts, Buffer.from(`--${BOUNDARY}--\r\n`)]),
    clients: CLIENTS
  }
}

/** An engine that works on one call at a time, whatever it holds, as one with a single sequence does. */
export const oneTextEach = json(
  'embeddings, one text, 64 clients', '/v1/embeddings', { model: 'embed', user: 'one call at a time', input: 'text '.repeat(20) }, 64
)

/** What the other `/v1` surfaces carry: batches, pictures, uploads, sound. */
export const surfaceLoads: readonly SurfaceLoad[] = [
  json('embeddings, 64 texts', '/v1/embeddings', {
    model: 'embed', input: Array.from({ length: 64 }, (_, i) => `text ${i} `.repeat(100))
  }),
  oneTextEach,
  json('vision, 10 MB picture', '/v1/chat/completions', {
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(10 * MIB)}` } }] }],
    model: 'agent'
  }),
  upload('upload, 20 MB, model first', true),
  upload('upload, 20 MB, model last', false),
  json('speech, 2 MB of sound', '/v1/audio/speech', { model: 'tts', input: 'hello', voice: 'a' })
]

/** By kind of request, then by target. */
export type Surfaces = ReadonlyMap<string, ReadonlyMap<string, ClientsResult>>

/** Rounds are interleaved; of each target's the one in the middle counts. */
export async function measureSurfaces (
  targets: ReadonlyMap<string, BenchServer>, rounds: number, seconds: number, say: (text: string) => void
): Promise<Surfaces> {
  const all = new Map<string, Map<string, ClientsResult>>()
  for (const kind of surfaceLoads) {
    const runs = new Map([...targets.keys()].map(name => [name, [] as ClientsResult[]]))
    for (let round = 0; round < rounds; round++) {
      for (const [name, { origin }] of targets) runs.get(name)!.push(await runClients(origin, kind, kind.clients, seconds))
    }
    const middle = (list: ClientsResult[]): ClientsResult => {
      return list.sort((a, b) => a.requestsPerS - b.requestsPerS)[Math.floor(list.length / 2)]!
    }
    all.set(kind.name, new Map([...runs].map(([name, list]) => [name, middle(list)])))
    say(`${kind.name} done`)
  }
  return all
}

export function surfaceBars (surfaces: Surfaces): readonly Bar[] {
  return [...surfaces].map(([name, by]) => {
    const ratio = by.get('svc gateway')!.requestsPerS / by.get('bare node proxy')!.requestsPerS
    return atLeast(`${name}: of the bare proxy`, ratio, name === oneTextEach.name ? 3 : 0.8)
  })
}
