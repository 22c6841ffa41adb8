import { randomUUID } from 'node:crypto'
import { svcError, type DispatchService, type Otherwise } from 'svc-gateway/plugin'
import { readAll } from '../omni/ref.js'
import { bodyObject, isObject, refusalHeaders, textOr, type Json } from '../over-chat/ref.js'
import { moderationsError } from './errors.js'

const LONGEST_ANSWER_BYTES = 1024 * 1024
const MOST_TEXTS = 256
/** A verdict and its hazards. */
const MOST_TOKENS = 64

/** What Llama Guard's hazards are called on this wire. Those without a name there flag a text and no category. */
const categoriesOf: Readonly<Record<string, readonly string[]>> = {
  S1: ['violence'],
  S2: ['illicit'],
  S3: ['sexual'],
  S4: ['sexual', 'sexual/minors'],
  S5: ['harassment'],
  S9: ['illicit', 'illicit/violent'],
  S10: ['hate'],
  S11: ['self-harm'],
  S12: ['sexual']
}

const categories = [
  'sexual', 'sexual/minors', 'harassment', 'harassment/threatening', 'hate', 'hate/threatening', 'illicit', 'illicit/violent',
  'self-harm', 'self-harm/intent', 'self-harm/instructions', 'violence', 'violence/graphic'
] as const

/** Moderation by a guard model that chats: it answers `safe`, or `unsafe` and the codes of what is wrong. */
export function moderationOverChat (dispatch: DispatchService): Otherwise {
  return {
    surface: 'chat',
    take ({ body, requestId, headers: origin }) {
      const { model, input } = bodyObject(body)
      const texts = textsOf(input)
      const name = textOr(model, '')
      return {
        stream: false,
        answer: async signal => {
          const results: Json[] = []
          for (const text of texts) {
            const chat = { model: name, messages: [{ role: 'user', content: text }], temperature: 0, max_tokens: MOST_TOKENS }
            const answer = await dispatch.call({
              surface: 'chat', path: '/chat/completions', body: Buffer.from(JSON.stringify(chat)), requestId, origin, signal
            })
            const { status, headers } = answer
            if (status !== 200) return { status, headers: refusalHeaders(headers), body: answer.body }
            results.push(verdictOf(said(await readAll(answer, LONGEST_ANSWER_BYTES)), name))
          }
          const whole = { id: `modr-${randomUUID().replaceAll('-', '')}`, model: name, results }
          return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(whole)) }
        }
      }
    }
  }
}

/** Texts of a request, each of which gets a result. Throws `validation.invalid`. Pure. */
export function textsOf (input: unknown): readonly string[] {
  const parts: readonly unknown[] = Array.isArray(input) ? input : [input]
  if (parts.length === 0 || parts.length > MOST_TEXTS) throw wrongInput(`must be one text or a list of at most ${MOST_TEXTS}`)
  // parts with a type are one text in pieces
  if (parts.every(part => isObject(part))) {
    const pieces = (parts as readonly Json[]).map(({ type, text }) => {
      if (type === 'text' && typeof text === 'string') return text
      throw wrongInput('may contain only texts: this model does not accept images')
    })
    return [pieces.join('\n')]
  }
  if (!parts.every(part => typeof part === 'string')) throw wrongInput('must be a text or a list of texts')
  return parts as readonly string[]
}

/** A result as the wire has it. Throws `moderations.not_a_guard`. Pure. */
export function verdictOf (answer: string, model: string): Json {
  const [verdict = '', ...rest] = answer.trim().split('\n').map(line => line.trim())
  if (!/^(un)?safe$/i.test(verdict)) {
    throw moderationsError('moderations.not_a_guard',
      `model '${model}' answered neither safe nor unsafe: it is not a guard model; name one such as Llama Guard, or a model of an upstream that has /moderations`,
      { param: 'model', details: { model } })
  }
  const codes = verdict.toLowerCase() === 'safe' ? [] : rest.join(',').split(/[\s,]+/).filter(code => /^S\d{1,2}$/.test(code))
  const found = new Set(codes.flatMap(code => categoriesOf[code] ?? []))
  const all = (value: (name: string) => unknown): Json => Object.fromEntries(categories.map(name => [name, value(name)]))
  return {
    flagged: verdict.toLowerCase() === 'unsafe',
    categories: all(name => found.has(name)),
    // a guard model gives a verdict and no probability
    category_scores: all(name => found.has(name) ? 1 : 0),
    category_applied_input_types: all(() => ['text']),
    hazards: codes
  }
}

function said (bytes: Buffer): string {
  const body = bodyObject(bytes)
  const [choice] = Array.isArray(body.choices) ? body.choices as readonly unknown[] : []
  return isObject(choice) && isObject(choice.message) ? textOr(choice.message.content, '') : ''
}

function wrongInput (problem: string): Error {
  return svcError('validation.invalid', `input ${problem}`, { param: 'input', details: { fields: [{ path: 'input', message: problem }] } })
}
