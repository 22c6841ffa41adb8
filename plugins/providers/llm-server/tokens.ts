import { svcError, type AdaptedAnswer, type AdaptRequest, type EngineClient } from 'svc-gateway/plugin'
import { z } from 'zod'

const tokenizeSchema = z.looseObject({
  prompt: z.string().optional(),
  messages: z.array(z.unknown()).min(1).optional(),
  tools: z.unknown().optional(),
  add_special_tokens: z.boolean().optional(),
  return_token_strs: z.boolean().nullish()
}).refine(({ prompt, messages }) => prompt !== undefined || messages !== undefined, { path: ['prompt'], error: 'is missing: give `prompt` or `messages`' })

const detokenizeSchema = z.looseObject({ tokens: z.array(z.int().min(0)) })

const pieceSchema = z.union([z.int(), z.looseObject({ id: z.int(), piece: z.union([z.string(), z.array(z.int())]) })])
const tokenizedSchema = z.looseObject({ tokens: z.array(pieceSchema) })
const templatedSchema = z.looseObject({ prompt: z.string() })
const textSchema = z.looseObject({ content: z.string() })
const propsSchema = z.looseObject({ default_generation_settings: z.looseObject({ n_ctx: z.int() }) })

/** `/v1/tokenize` on the engine's own `/tokenize`, and its template for a chat. */
export async function tokenize ({ body, client, signal }: AdaptRequest): Promise<AdaptedAnswer> {
  const asked = request(tokenizeSchema, body)
  const { messages, tools, return_token_strs: pieces, add_special_tokens: special = messages === undefined } = asked
  let { prompt = '' } = asked
  if (messages !== undefined) {
    const templated = await post(client, '/apply-template', { messages, ...(tools === undefined ? {} : { tools }) }, signal)
    if (templated.status !== 200) return refusal(templated)
    prompt = engine(templatedSchema, templated.text).prompt
  }
  const answer = await post(client, '/tokenize', { content: prompt, add_special: special, with_pieces: pieces === true }, signal)
  if (answer.status !== 200) return refusal(answer)
  const { tokens } = engine(tokenizedSchema, answer.text)
  const ids = tokens.map(token => typeof token === 'number' ? token : token.id)
  const strings = tokens.map(token => typeof token === 'number' ? '' : textOf(token.piece))
  const count = { count: ids.length, max_model_len: await contextOf(client, signal) }
  return json({ ...count, tokens: ids, token_strs: pieces === true ? strings : null })
}

export async function detokenize ({ body, client, signal }: AdaptRequest): Promise<AdaptedAnswer> {
  const answer = await post(client, '/detokenize', { tokens: request(detokenizeSchema, body).tokens }, signal)
  return answer.status === 200 ? json({ prompt: engine(textSchema, answer.text).content }) : refusal(answer)
}

/** Bytes that are no text by themselves are shown as such. */
function textOf (piece: string | readonly number[]): string {
  return typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8')
}

async function contextOf (client: EngineClient, signal: AbortSignal): Promise<number> {
  const answer = await client.request({ path: '/props', signal })
  const parsed = propsSchema.safeParse(await answer.json().catch(() => null))
  return parsed.success ? parsed.data.default_generation_settings.n_ctx : 0
}

interface Answer { readonly status: number, readonly text: string }

async function post (client: EngineClient, path: string, body: object, signal: AbortSignal): Promise<Answer> {
  const answer = await client.request({ method: 'POST', path, body, signal })
  return { status: answer.status, text: await answer.text() }
}

function request<S extends z.ZodType> (schema: S, body: Buffer): z.output<S> {
  const parsed = schema.safeParse(asked(body))
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]!
  const field = path.join('.')
  throw svcError('validation.invalid', `${field} ${message}`, { param: field, details: { fields: [{ path: field, message }] } })
}

/** The insides of strings have not been looked at before. */
function asked (body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw svcError('request.invalid_json', 'the body is not valid JSON', { cause: error })
  }
}

function engine<S extends z.ZodType> (schema: S, text: string): z.output<S> {
  try {
    return schema.parse(JSON.parse(text))
  } catch (error) {
    throw svcError('dispatch.upstream_failed', 'the engine gave an unexpected answer to a token request', { cause: error })
  }
}

function refusal ({ status, text }: Answer): AdaptedAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: Buffer.from(text) }
}

function json (body: object): AdaptedAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) }
}
