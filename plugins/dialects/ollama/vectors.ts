import type { AdaptedAnswer, RouteCall, handled } from 'svc-gateway/plugin'
import { isObject, malformed, MOST_WARNINGS, requestObject, textOr, warningHeader, type Json } from '../../v1/over-chat/ref.js'
import { askVectors, type Vectors } from '../../v1/vectors/ref.js'
import { ns } from './talk/answer.js'
import { modelIn, NOT_CUT, unknownKeys } from './body.js'
import { ollamaDialect } from './dialect.js'
import { keep, keepAliveMs } from './keep-alive.js'
import { nameHere } from './names.js'
import type { TalkServices } from './talk/talk.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const embedKeys: ReadonlySet<string> = new Set(['model', 'name', 'input', 'truncate', 'dimensions', 'options', 'keep_alive'])
const oldKeys: ReadonlySet<string> = new Set(['model', 'name', 'prompt', 'options', 'keep_alive'])

/** `/api/embed`: a list of vectors, also for one text. */
export function embed (services: TalkServices, call: RouteCall<unknown, unknown, Buffer>): typeof handled {
  const startedAt = services.clock.monotonic()
  const asked = requestObject(call.body)
  const { input } = asked
  const isList = Array.isArray(input)
  if (!isList && input != null && typeof input !== 'string') throw malformed('input', 'must be a string or a list of strings')
  const texts = isList ? input : textOr(input, '') === '' ? [] : [input]
  return answered(services, call, {
    asked,
    texts,
    warnings: [...unknownKeys(asked, embedKeys), ...optionsLeft(asked), ...asked.truncate === true ? [NOT_CUT] : []],
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
  const asked = requestObject(call.body)
  const { prompt } = asked
  if (prompt != null && typeof prompt !== 'string') throw malformed('prompt', 'must be a string')
  const texts = textOr(prompt, '') === '' ? [] : [prompt]
  return answered(services, call, {
    asked,
    texts,
    warnings: [...unknownKeys(asked, oldKeys), ...optionsLeft(asked)],
    answerOf: ({ vectors }) => ({ embedding: vectors[0] ?? [] })
  })
}

/** Options are about what a model writes, or how it is started. */
function optionsLeft ({ options }: Json): string[] {
  if (options == null) return []
  if (!isObject(options)) throw malformed('options', 'must be an object')
  return Object.keys(options).filter(key => options[key] !== null).slice(0, MOST_WARNINGS)
    .map(key => `options.${key.slice(0, 64)}: left out, vectors are made without it`)
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
    const target = dispatch.target(model, 'embeddings')
    const slot = target?.slot ?? null
    // a name that nothing has is refused like one that is asked for vectors
    if (texts.length === 0 && target !== null) {
      if (slot !== null) await slots.ensureReady(slot, signal)
      return told({ vectors: [], tokens: 0 })
    }
    const { requestId, request } = call
    const wish = { model, texts, dimensions: asked.dimensions, requestId, origin: request.headers, signal }
    const found = await askVectors(dispatch, wish)
    if ('refusal' in found) return found.refusal
    keep(slots, slot, keepMs)
    return told(found)
  })
}
