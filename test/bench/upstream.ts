import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatAnswer, chatStream } from '../../kernel/testing/index.js'

/** An engine stand-in: plain answers at once, streams of CHUNKS events with a pause between them, vectors, sound. */
const CHUNKS = 40
const answer = Buffer.from(chatAnswer('x'.repeat(400)))
const events = chatStream(Array.from({ length: CHUNKS }, (_, i) => ` token${i}`)).map(event => Buffer.from(event))

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
const paced = new Map<string, ServerResponse[]>()

function open (name: string, res: ServerResponse): void {
  const group = paced.get(name) ?? []
  paced.set(name, group)
  group.push(res)
  res.writeHead(200, { 'content-type': 'text/event-stream' }).write(events[0])
  res.write(events[1])
  res.on('close', () => group.splice(group.indexOf(res), 1))
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
      for (let i = 0; i < perMs && sent < count; i++) group[sent++ % group.length]!.write(events[1 + sent % CHUNKS])
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
  let group: string | undefined
  let size = 0
  const small: Buffer[] = []
  req.on('data', (chunk: Buffer) => {
    // an engine's parser is not what is measured
    if (size === 0) {
      streaming = chunk.includes('"stream":true')
      oneAtATime = chunk.includes('one call at a time')
      atOnce = chunk.includes('all at once')
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
    if (!streaming) {
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
      res.end(answer)
      return
    }
    if (group !== undefined) return open(group, res)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    if (atOnce) {
      res.write(Buffer.concat(events.slice(0, 2)))
      return void setImmediate(() => res.end(Buffer.concat(events.slice(2))))
    }
    let i = 0
    const timer = setInterval(() => {
      res.write(events[i++])
      if (i < events.length) return
      clearInterval(timer)
      res.end()
    }, 50)
    res.on('close', () => clearInterval(timer))
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`))
process.on('message', (what: string) => {
  const [, name, count, perMs] = /^pace ([a-z]+) (\d+) (\d+)$/.exec(what) ?? []
  if (name !== undefined) void pace(name, Number(count), Number(perMs)).then(() => process.send!({}))
  else process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() })
})
process.on('disconnect', () => process.exit(0))
