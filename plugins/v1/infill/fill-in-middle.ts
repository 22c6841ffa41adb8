import { randomUUID } from 'node:crypto'
import { svcError, type AdaptedAnswer, type Clock, type DispatchService, type Otherwise, type OtherwiseRequest } from 'svc-gateway/plugin'
import { readAll } from '../omni/ref.js'
import { bodyObject, countOf, EventData, given, isObject, malformed, refusalHeaders, stringIn, textOr, type Json } from '../over-chat/ref.js'

/** How the answer is worded: a legacy text completion, or a chat completion as `/v1/fim/completions` has it. */
export type FimFormat = 'text' | 'chat'

const LONGEST_ANSWER_BYTES = 16 * 1024 * 1024
const SSE = 'text/event-stream'
/** What the engine has no words for. */
const refused = ['echo', 'best_of', 'logprobs', 'images', 'tools'] as const

/** Text between two others, for engines that do it on a path of their own (`/infill`). What is not of the API passes. */
export function fillInMiddle (dispatch: DispatchService, clock: Clock, format: FimFormat): Otherwise {
  return {
    surface: 'infill',
    take (request) {
      const asked = bodyObject(request.body)
      const body = infillBody(asked)
      const stream = asked.stream === true
      return { stream, answer: signal => ask(dispatch, clock, { request, body, stream, format, model: textOr(asked.model, '') }, signal) }
    }
  }
}

/** Throws `validation.invalid` for what cannot be said. Pure. */
export function infillBody (asked: Json): Json {
  const { prompt, suffix, max_tokens: limit, random_seed: seed, n, stream_options: _, ...others } = given(asked)
  for (const name of refused) {
    if (others[name] !== undefined && others[name] !== false) throw malformed(name, 'cannot be passed to this engine together with a suffix')
  }
  if (n !== undefined && n !== 1) throw malformed('n', 'must be 1 together with a suffix')
  return {
    ...others,
    input_prefix: stringIn(prompt, 'prompt'),
    input_suffix: suffix === undefined ? '' : stringIn(suffix, 'suffix'),
    ...(limit === undefined ? {} : { n_predict: limit }),
    ...(seed === undefined ? {} : { seed })
  }
}

interface Asked {
  readonly request: OtherwiseRequest
  readonly body: Json
  readonly stream: boolean
  readonly format: FimFormat
  readonly model: string
}

async function ask (
  dispatch: DispatchService, clock: Clock, { request, body, stream, format, model }: Asked, signal: AbortSignal
): Promise<AdaptedAnswer> {
  const { requestId, headers: origin } = request
  const answer = await dispatch.call({
    surface: 'infill', path: '/infill', body: Buffer.from(JSON.stringify(body)), requestId, origin, priority: 'normal', signal
  })
  if (answer.status !== 200) return { status: answer.status, headers: refusalHeaders(answer.headers), body: answer.body }
  const words = new FimWords(format, model, Math.floor(clock.now() / 1000))
  if (stream && answer.headers['content-type']?.startsWith(SSE) === true) {
    return { status: 200, headers: { 'content-type': SSE }, body: events(answer.body, words) }
  }
  const text = (await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8')
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(words.whole(read(text)))) }
}

async function* events (body: AsyncIterable<Buffer>, words: FimWords): AsyncGenerator<Buffer> {
  const cutter = new EventData()
  let isOver = false
  for await (const chunk of body) {
    for (const data of cutter.push(chunk)) {
      if (data === '[DONE]') continue
      const event = read(data)
      if (event.error !== undefined) throw svcError('dispatch.upstream_failed', failureOf(event.error))
      isOver ||= event.stop === true
      yield Buffer.from(words.events(event).map(each => `data: ${JSON.stringify(each)}\n\n`).join(''))
    }
  }
  if (!isOver) throw svcError('dispatch.upstream_failed', 'the engine ended its stream before its answer was complete')
  yield Buffer.from('data: [DONE]\n\n')
}

function failureOf (error: unknown): string {
  return `the engine failed: ${isObject(error) ? textOr(error.message, 'it does not say why') : 'it does not say why'}`
}

/** An engine's answer, whole or piece by piece, in the words of the API. */
class FimWords {
  readonly #format: FimFormat
  readonly #head: Json
  #isBegun = false

  constructor (format: FimFormat, model: string, created: number) {
    this.#format = format
    this.#head = { id: `${format === 'text' ? 'cmpl' : 'fim'}-${randomUUID().replaceAll('-', '')}`, created, model }
  }

  whole (answer: Json): Json {
    const content = textOr(answer.content, '')
    const said = this.#format === 'text' ? { text: content, logprobs: null } : { message: { role: 'assistant', content, tool_calls: null } }
    const object = this.#format === 'text' ? 'text_completion' : 'chat.completion'
    return { ...this.#head, object, choices: [{ index: 0, ...said, finish_reason: reason(answer) }], usage: usage(answer) }
  }

  events (event: Json): readonly Json[] {
    const content = textOr(event.content, '')
    const isEnd = event.stop === true
    const object = this.#format === 'text' ? 'text_completion' : 'chat.completion.chunk'
    const delta = { ...(this.#isBegun ? {} : { role: 'assistant' }), content }
    const said = this.#format === 'text' ? { text: content, logprobs: null } : { delta }
    this.#isBegun = true
    return [{
      ...this.#head,
      object,
      choices: [{ index: 0, ...said, finish_reason: isEnd ? reason(event) : null }],
      ...(isEnd ? { usage: usage(event) } : {})
    }]
  }
}

function reason ({ stop_type: type }: Json): string {
  return type === 'limit' ? 'length' : 'stop'
}

function usage ({ tokens_evaluated: asked, tokens_predicted: made }: Json): Json {
  const [prompt, completion] = [countOf(asked), countOf(made)]
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
}

function read (text: string): Json {
  try {
    const value = JSON.parse(text) as unknown
    if (isObject(value)) return value
  } catch {
    // said below
  }
  throw svcError('dispatch.upstream_failed', 'the engine answered with something that is not a JSON object')
}
