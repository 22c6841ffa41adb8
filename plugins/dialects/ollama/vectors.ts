import { svcError, type AdaptedAnswer, type CallAnswer, type RouteCall, type handled } from 'svc-gateway/plugin'
import { readAll } from '../../v1/omni/ref.js'
import { countOf, given, isObject, malformed, textOr, warningHeader, type Json } from '../../v1/over-chat/ref.js'
import { ns } from './answer.js'
import { askedIn, modelIn, unknownKeys } from './body.js'
import { ollamaDialect } from './dialect.js'
import { keepAliveMs } from './keep-alive.js'
import { nameHere } from './names.js'
import type { TalkServices } from './talk.js'

const LONGEST_ANSWER_BYTES = 256 * 1024 * 1024
const JSON_TYPE = { 'content-type': 'application/json' }
const embedKeys: ReadonlySet<string> = new Set(['model', 'name', 'input', 'truncate', 'dimensions', 'options', 'keep_alive'])
const oldKeys: ReadonlySet<string> = new Set(['model', 'name', 'prompt', 'options', 'keep_alive'])

interface Vectors {
  readonly vectors: readonly unknown[]
  /** Tokens of the texts. */
  readonly tokens: number
}

/** `/api/embed`: a list of vectors, also for one text. */
export function embed (services: TalkServices, call: RouteCall<unknown, unknown, Buffer>): typeof handled {
  const startedAt = services.clock.monotonic()
  const asked = askedIn(call.body)
  const { input } = asked
  const isList = Array.isArray(input)
  if (!isList && input != null && typeof input !== 'string') throw malformed('input', 'must be a string or a list of strings')
  const texts = isList ? input : textOr(input, '') === '' ? [] : [input]
  return answered(services, call, {
    asked,
    texts,
    warnings: unknownKeys(asked, embedKeys),
    answerOf: ({ vectors, tokens }) => ({
      model: modelIn(asked),
      embeddings: vectors,
      total_duration: ns(services.clock.monotonic() - startedAt),
      load_duration: 0,
      prompt_eval_count: tokens
    })
  })
}

/** `/api/embeddings`, the older of the two: one text, one vector. */
export function oldEmbed (services: TalkServices, call: RouteCall<unknown, unknown, Buffer>): typeof handled {
  const asked = askedIn(call.body)
  const { prompt } = asked
  if (prompt != null && typeof prompt !== 'string') throw malformed('prompt', 'must be a string')
  const texts = textOr(prompt, '') === '' ? [] : [prompt]
  return answered(services, call, {
    asked, texts, warnings: unknownKeys(asked, oldKeys), answerOf: ({ vectors }) => ({ embedding: vectors[0] ?? [] })
  })
}

interface Wish {
  readonly asked: Json
  readonly texts: readonly unknown[]
  readonly warnings: readonly string[]
  readonly answerOf: (vectors: Vectors) => object
}

function answered (
  { dispatch, slots }: TalkServices, call: RouteCall<unknown, unknown, Buffer>, { asked, texts, warnings, answerOf }: Wish
): typeof handled {
  const named = modelIn(asked)
  const keepMs = keepAliveMs(asked.keep_alive)
  const model = nameHere(dispatch, named, ['embeddings'])
  return dispatch.compose(call, { surface: 'embeddings', model: named, stream: false, dialect: ollamaDialect }, async signal => {
    const headers = { ...JSON_TYPE, ...warningHeader(warnings) }
    const told = (vectors: Vectors): AdaptedAnswer =>
      ({ status: 200, headers, body: Buffer.from(JSON.stringify(answerOf(vectors))) })
    const slot = dispatch.target(model, 'embeddings')?.slot ?? null
    if (texts.length === 0) {
      if (slot !== null) await slots.ensureReady(slot, signal)
      return told({ vectors: [], tokens: 0 })
    }
    const answer = await dispatch.call({
      surface: 'embeddings',
      path: '/embeddings',
      body: Buffer.from(JSON.stringify(given({ model, input: texts, dimensions: asked.dimensions, encoding_format: 'float' }))),
      requestId: call.requestId,
      origin: call.request.headers,
      signal
    })
    if (answer.status < 200 || answer.status > 299) return { status: answer.status, headers: JSON_TYPE, body: answer.body }
    if (slot !== null && keepMs !== null) slots.keep(slot, keepMs)
    return told(await vectorsIn(answer, texts.length))
  })
}

/** Vectors in the order of the texts. Throws for an answer that has another number of them. */
async function vectorsIn (answer: CallAnswer, count: number): Promise<Vectors> {
  const vectors: unknown[] = []
  const { data, usage } = parsed((await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8'))
  for (const [i, row] of (Array.isArray(data) ? data as readonly unknown[] : []).entries()) {
    if (!isObject(row) || !Array.isArray(row.embedding)) throw notVectors()
    vectors[typeof row.index === 'number' && row.index < count ? row.index : i] = row.embedding
  }
  if (vectors.length !== count || vectors.includes(undefined)) throw notVectors()
  return { vectors, tokens: isObject(usage) ? countOf(usage.prompt_tokens) : 0 }
}

function parsed (text: string): Json {
  try {
    const value = JSON.parse(text) as unknown
    if (isObject(value)) return value
  } catch {
    // told below
  }
  throw notVectors()
}

function notVectors (): Error {
  return svcError('dispatch.upstream_failed', 'the engine answered with something that is no list of embeddings')
}
