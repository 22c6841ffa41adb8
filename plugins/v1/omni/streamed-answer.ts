import { svcError, type AdaptedAnswer, type CallAnswer, type Clock } from 'svc-gateway/plugin'
import { readAll } from './engine-call.js'
import type { OmniLoop, Verdict } from './loop.js'
import { account, audioPart, picturesText, usageOf } from './plain-answer.js'
import { streamEvents } from './sse-events.js'
import { isUsage } from './usage.js'
import { chunkBytes, readRound, type ChunkHead, type RoundEnd } from './streamed-round.js'

const SSE = { 'content-type': 'text/event-stream' }
const DONE = Buffer.from('data: [DONE]\n\n')
const PING = Buffer.from(': ping\n\n')
const LONGEST_ERROR_BODY = 64 * 1024

export interface StreamTimes {
  readonly clock: Clock
  /** Between signs of life while tools work; 0 is none. */
  readonly pingMs: number
}

/**
 * Runs the loop for a client that reads a stream. What the model says is passed on as it comes, also in rounds that
 * end with calls of tools: that cannot be known before. The calls themselves stay here.
 */
export async function streamedAnswer (loop: OmniLoop, times: StreamTimes): Promise<AdaptedAnswer> {
  const first = await loop.chat()
  if (!isStream(first)) return { status: first.status, headers: headersOf(first), body: first.body }
  return { status: 200, headers: SSE, body: rounds(loop, first, times) }
}

async function* rounds (loop: OmniLoop, first: CallAnswer, times: StreamTimes): AsyncGenerator<Buffer, void, undefined> {
  let answer = first
  let head: ChunkHead | null = null
  for (;;) {
    const end: RoundEnd = yield* readRound(streamEvents(answer.body), loop.round, head)
    head = end.head
    if (end.failed) return
    for (const { chunk } of end.kept) loop.spend(chunk.usage)
    const verdict = loop.judge(end.calls)
    if (verdict.isLast) return yield* lastChunks(end, verdict, loop)
    const runs = yield* alive(loop.run(end.message, end.calls), times)
    for (const { audio } of runs) {
      if (audio !== null) yield delta(head, { audio: audioPart(audio, times.clock) })
    }
    if (end.hasText) yield delta(head, { content: '\n\n' })
    try {
      answer = yield* alive(loop.chat(), times)
    } catch (error) {
      if (!loop.isOnlyGpu(error)) throw error
      yield delta(head, { content: picturesText(loop) })
      yield chunkBytes({ ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
      if (loop.usage !== null) yield chunkBytes({ ...head, choices: [], ...usageOf(loop) })
      yield DONE
      return
    }
    if (!isStream(answer)) throw await refusalOf(answer, loop.caller)
  }
}

/** What was kept back of the last round: calls for the client, the reason of the end, the usage. */
function* lastChunks (
  { head, kept, done }: RoundEnd, { forClient, trimmed }: Verdict, loop: OmniLoop
): Generator<Buffer, void, undefined> {
  if (forClient.length > 0) yield delta(head, { tool_calls: forClient.map((call, index) => ({ index, ...call })) })
  for (const [i, { bytes, chunk }] of kept.entries()) {
    const told = loop.tellsStream && i === kept.length - 1 ? { _svc: account(loop) } : {}
    const isStopped = trimmed && forClient.length === 0
    const isSummed = loop.round > 1 && isUsage(chunk.usage)
    if (!isStopped && !isSummed && !loop.tellsStream) yield bytes
    else yield chunkBytes({ ...isStopped ? stopped(chunk) : chunk, ...isSummed ? usageOf(loop) : {}, ...told })
  }
  if (done) yield DONE
}

/** The reason of an answer whose calls were all left out. */
function stopped (chunk: Readonly<Record<string, unknown>>): object {
  const choices = (chunk.choices ?? []) as ReadonlyArray<{ readonly finish_reason?: unknown }>
  return { ...chunk, choices: choices.map(choice => choice.finish_reason == null || choice.finish_reason === '' ? choice : { ...choice, finish_reason: 'stop' }) }
}

function delta (head: ChunkHead, content: object): Buffer {
  return chunkBytes({ ...head, choices: [{ index: 0, delta: content, finish_reason: null }] })
}

/** The outcome of some work, with signs of life until it is there. */
async function* alive<T> (work: Promise<T>, { clock, pingMs }: StreamTimes): AsyncGenerator<Buffer, T, undefined> {
  const settled = work.then(() => true, () => true)
  while (pingMs > 0) {
    let ring = (): void => {}
    const timer = clock.setTimer(pingMs, () => ring())
    const isDone = await Promise.race([settled, new Promise<false>(resolve => { ring = () => resolve(false) })])
    timer.cancel()
    if (isDone) break
    yield PING
  }
  return await work
}

async function refusalOf (answer: CallAnswer, slot: string): Promise<Error> {
  const text = (await readAll(answer, LONGEST_ERROR_BODY)).toString('utf8')
  let message = text
  try {
    message = (JSON.parse(text) as { readonly error?: { readonly message?: string } }).error?.message ?? text
  } catch {
    // not JSON: told as it is
  }
  return svcError('dispatch.upstream_failed', `slot '${slot}' answered ${answer.status} after its tools had run: ${message.slice(0, 500)}`,
    { details: { slot, status: answer.status } })
}

function isStream ({ status, headers }: CallAnswer): boolean {
  return status === 200 && headers['content-type']?.startsWith('text/event-stream') === true
}

function headersOf ({ headers }: CallAnswer): Record<string, string> {
  const type = headers['content-type']
  return type === undefined ? {} : { 'content-type': type }
}
