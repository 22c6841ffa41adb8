import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatAnswer, chatStream } from '../../kernel/testing/index.js'

/** An engine stand-in: plain answers at once, streams of CHUNKS events with a pause between them, vectors, sound. */
const CHUNKS = 40
const answer = Buffer.from(chatAnswer('x'.repeat(400)))
const events = chatStream(Array.from({ length: CHUNKS }, (_, i) => ` token${i}`)).map(event => Buffer.from(event))

/** Chunks that differ in their padding too, as OpenAI's do. */
const padded = events.map((event, i) => Buffer.from(event.toString().replace(/\}\n\n$/, `,"obfuscation":"${'a1B2c3D4'.slice(i % 8)}"}\n\n`)))

const messageEvent = (type: string, members: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`
/** As many events as of chat, each in its place: the first and the last ones are several. */
const messageEvents = [
  messageEvent('message_start', { message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'bench', content: [], usage: { input_tokens: 3, output_tokens: 1 } } }) +
  messageEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  ...Array.from({ length: CHUNKS }, (_, i) => messageEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: ` token${i}` } })),
  messageEvent('content_block_stop', { index: 0 }),
  messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: CHUNKS } }) + messageEvent('message_stop', {})
].map(event => Buffer.from(event))
const message = Buffer.from(JSON.stringify({
  id: 'msg_1', type: 'message', role: 'assistant', model: 'bench', content: [{ type: 'text', text: 'x'.repeat(400) }], stop_reason: 'end_turn',
  usage: { input_tokens: 3, output_tokens: 2 }
}))
/** Below this path the upstream speaks the Messages API alone. */
const MESSAGES = '/anthropic/v1/'

const row = (index: number): object => ({ object: 'embedding', index, embedding: Array.from({ length: 384 }, () => 0.123456) })
const vectorsOf = (texts: number): Buffer => Buffer.from(JSON.stringify({ object: 'list', data: Array.from({ length: texts }, (_, i) => row(i)) }))
const vectors = vectorsOf(64)
/** By number of texts. */
const answers = new Map<number, Buffer>()
/** What one call costs an engine that works on one at a time, in milliseconds. */
const CALL_MS = 5
let turn: Promise<unknown> = Promise.resolve()

/** Answers as many texts as there are, after those who came before. */
function inTurn (body: Buffer, res: ServerResponse): void {
  const { input } = JSON.parse(body.toString()) as { input: string | string[] }
  const texts = typeof input === 'string' ? 1 : input.length
  const answer = answers.get(texts) ?? vectorsOf(texts)
  answers.set(texts, answer)
  turn = turn.then(() => new Promise<void>(resolve => {
    setTimeout(() => {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
      resolve()
    }, CALL_MS)
  }))
}

/** Streams that stand still until it is their turn, by the name that their requests give. */
const paced = new Map<string, PacedStream[]>()

interface PacedStream {
  readonly res: ServerResponse
  readonly events: readonly Buffer[]
}

function open (name: string, res: ServerResponse, events: readonly Buffer[]): void {
  const group = paced.get(name) ?? []
  paced.set(name, group)
  const stream = { res, events }
  group.push(stream)
  res.writeHead(200, { 'content-type': 'text/event-stream' }).write(events[0])
  res.write(events[1])
  res.on('close', () => group.splice(group.indexOf(stream), 1))
}

/**
 * Sends `count` events on the streams of a group, one stream after the other, a few each millisecond. What a busy machine holds
 * up is not made up for: two events on one stream that come together are one chunk.
 */
function pace (name: string, count: number, perMs: number): Promise<void> {
  const group = paced.get(name)!
  let sent = 0
  return new Promise(resolve => {
    const timer = setInterval(() => {
      for (let i = 0; i < perMs && sent < count; i++) {
        const { res, events } = group[sent++ % group.length]!
        res.write(events[1 + sent % CHUNKS])
      }
      if (sent < count) return
      clearInterval(timer)
      resolve()
    }, 1)
  })
}

const sound = Buffer.alloc(32 * 1024, 7)
const SOUND_PIECES = 64

/** As fast as the reader takes it. */
function sing (res: ServerResponse, left = SOUND_PIECES): void {
  while (left-- > 0) {
    if (!res.write(sound)) return void res.once('drain', () => sing(res, left))
  }
  res.end()
}

const server = createServer((req, res) => {
  if (req.url === '/health') return void res.end('{}')
  let streaming = false
  let oneAtATime = false
  let atOnce = false
  const speaksMessages = req.url!.startsWith(MESSAGES)
  let told: readonly Buffer[] = speaksMessages ? messageEvents : events
  let group: string | undefined
  let size = 0
  const small: Buffer[] = []
  req.on('data', (chunk: Buffer) => {
    // an engine's parser is not what is measured
    if (size === 0) {
      streaming = chunk.includes('"stream":true')
      oneAtATime = chunk.includes('one call at a time')
      atOnce = chunk.includes('all at once')
      if (chunk.includes('with padding')) told = padded
      group = /in the pace of ([a-z]+)/.exec(chunk.toString('latin1'))?.[1]
    }
    if (oneAtATime) small.push(chunk)
    size += chunk.length
  })
  req.on('end', () => {
    if (oneAtATime) return inTurn(Buffer.concat(small), res)
    if (req.url === '/v1/embeddings') return void res.writeHead(200, { 'content-type': 'application/json', 'content-length': vectors.length }).end(vectors)
    if (req.url === '/v1/audio/speech') return sing(res.writeHead(200, { 'content-type': 'audio/wav' }))
    if (req.url === '/v1/audio/transcriptions') return void res.writeHead(200, { 'content-type': 'application/json' }).end(`{"text":"${size} bytes"}`)
    if (speaksMessages && !req.url!.endsWith('/messages')) return void res.writeHead(404).end()
    if (!streaming) {
      const whole = speaksMessages ? message : answer
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': whole.length })
      res.end(whole)
      return
    }
    if (group !== undefined) return open(group, res, told)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    if (atOnce) {
      res.write(Buffer.concat(told.slice(0, 2)))
      return void setImmediate(() => res.end(Buffer.concat(told.slice(2))))
    }
    let i = 0
    const timer = setInterval(() => {
      res.write(told[i++])
      if (i < told.length) return
      clearInterval(timer)
      res.end()
    }, 50)
    res.on('close', () => clearInterval(timer))
  })
})
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`))
process.on('message', (what: string) => {
  const [, name, count, perMs] = /^pace ([a-z]+) (\d+) (\d+)$/.exec(what) ?? []
  if (name !== undefined) void pace(name, Number(count), Number(perMs)).then(() => process.send!({}))
  else process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() })
})
process.on('disconnect', () => process.exit(0))
