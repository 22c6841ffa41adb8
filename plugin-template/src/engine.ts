/** The engine: a program that knows nothing of the gateway and speaks the OpenAI wire format. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'

const WORDS_PER_MINUTE = 175
const LONGEST_INPUT = 4096
const LONGEST_BODY_BYTES = 64 * 1024
const WAV_HEADER_BYTES = 44

class Refusal extends Error {
  constructor (readonly status: number, message: string, readonly param: string | null = null) {
    super(message)
  }
}

const { values: { host, port, language } } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '5002' },
    language: { type: 'string', default: 'en-us' }
  }
})
// an engine that cannot work ends here: its slot fails at once and shows this line
const voices = await readVoices().catch((error: Error) => fatal(error.message))
if (!voices.has(language)) fatal(`espeak-ng has no voice ${language}`)

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => refuse(response, error))
})
server.listen(Number(port), host, () => console.log(`listening on ${host}:${port}, ${voices.size} voices`))
process.once('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})

async function answer (request: IncomingMessage, response: ServerResponse): Promise<void> {
  const route = `${request.method} ${request.url}`
  if (route === 'GET /health') return send(response, 200, { status: 'ok' })
  if (route === 'GET /v1/audio/voices') return send(response, 200, { voices: [...voices].map(([id, name]) => ({ id, name })) })
  if (route === 'POST /v1/audio/speech') return await speak(request, response)
  throw new Refusal(404, `there is no ${route}`)
}

async function speak (request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { input, voice, speed, format } = parseOrder(await readBody(request))
  const left = new AbortController()
  response.once('close', () => left.abort())
  if (response.destroyed) return
  // the text goes in by stdin: on the command line it would be visible to all, and limited
  const args = ['--stdout', '--stdin', '-b', '1', '-v', voice, '-s', String(Math.round(WORDS_PER_MINUTE * speed))]
  const { stdout, ended } = await espeak(args, input, left.signal)
  if (format === 'pcm') {
    response.setHeader('content-type', 'audio/pcm;rate=22050')
    await pipeline(stdout, withoutHeader, response, { end: false })
    await ended
    response.end()
  } else {
    // espeak-ng does not know the length when it writes the header, and players trust it: so it is held back and mended
    const [wav] = await Promise.all([buffer(stdout), ended])
    wav.writeUInt32LE(wav.length - 8, 4)
    wav.writeUInt32LE(wav.length - WAV_HEADER_BYTES, 40)
    response.writeHead(200, { 'content-type': 'audio/wav', 'content-length': wav.length }).end(wav)
  }
}

function parseOrder (body: unknown): { input: string, voice: string, speed: number, format: 'wav' | 'pcm' } {
  const { input, voice, speed, response_format: format } = (body ?? {}) as Record<string, unknown>
  if (typeof input !== 'string' || input.trim() === '' || input.length > LONGEST_INPUT) {
    throw new Refusal(400, `input must be a text of at most ${LONGEST_INPUT} characters`, 'input')
  }
  const id = String(voice ?? language)
  if (!voices.has(id)) throw new Refusal(400, `there is no voice '${id}'; GET /v1/audio/voices lists them`, 'voice')
  const factor = speed ?? 1
  if (typeof factor !== 'number' || factor < 0.25 || factor > 4) throw new Refusal(400, 'speed must be between 0.25 and 4', 'speed')
  const wanted = format ?? 'wav'
  if (wanted !== 'wav' && wanted !== 'pcm') throw new Refusal(400, 'response_format must be wav or pcm', 'response_format')
  return { input, voice: id, speed: factor, format: wanted }
}

async function readBody (request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    // read on, or the client never gets to the answer
    if (size <= LONGEST_BODY_BYTES) chunks.push(chunk)
  }
  if (size > LONGEST_BODY_BYTES) throw new Refusal(413, `the body is larger than ${LONGEST_BODY_BYTES} bytes`)
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown
  } catch {
    throw new Refusal(400, 'the body is not JSON')
  }
}

/** Starts espeak-ng; the signal kills it. `ended` rejects when it fails. */
async function espeak (args: readonly string[], input = '', signal = new AbortController().signal) {
  const child = spawn('espeak-ng', args, { stdio: ['pipe', 'pipe', 'inherit'], signal })
  const ended = once(child, 'close').then(([code]) => {
    if (code !== 0) throw new Refusal(500, 'espeak-ng failed; see the log of the engine')
  })
  ended.catch(() => {}) // a later waiter handles it
  child.stdin.on('error', () => {}) // it ended without reading: its exit code says why
  await once(child, 'spawn').catch((error: Error) => {
    throw new Refusal(503, `espeak-ng cannot run (${error.message}); install it, on Debian with: apt-get install espeak-ng`)
  })
  child.stdin.end(input)
  return { stdout: child.stdout, ended }
}

/** Names by id, from a table of priority, language, gender, name, file. */
async function readVoices (): Promise<ReadonlyMap<string, string>> {
  const { stdout, ended } = await espeak(['--voices'])
  const [table] = await Promise.all([text(stdout), ended])
  const rows = table.trim().split('\n').slice(1).map(line => line.trim().split(/\s+/))
  return new Map(rows.map(([, id = '', , name = '']) => [id, name.replaceAll('_', ' ')]))
}

async function* withoutHeader (wav: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  let skip = WAV_HEADER_BYTES
  for await (const chunk of wav) {
    yield chunk.subarray(skip)
    skip = Math.max(0, skip - chunk.length)
  }
}

function send (response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function refuse (response: ServerResponse, error: unknown): void {
  // too late for a status: only a broken connection tells that the audio is not whole
  if (response.headersSent || response.destroyed) return void response.destroy()
  if (!(error instanceof Refusal)) console.error(error)
  const { status, message, param } = error instanceof Refusal ? error : new Refusal(500, 'the engine failed; its log says why')
  const type = status < 500 ? 'invalid_request_error' : 'server_error'
  send(response, status, { error: { message, type, param, code: null } })
}

function fatal (message: string): never {
  console.error(message)
  process.exit(1)
}
