import { toFile, type OpenAI } from 'openai'
import type { Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { encodePng } from '../plugins/providers/imagegen/fake/png.js'
import { wavOf } from '../plugins/providers/audio/sound.js'
import { makesClientSecrets, talks, tellsTheWayIn } from './realtime-surface.js'
import { hears, listsAudioModels, listsVoices, paints, repaints, speaks, translates } from './media-surfaces.js'
import {
  anthropic, callsTools, chats, compacts, completes, countsInputTokens, countsTokens, keepsConversations, keepsResponses,
  keepsToShape, openai, recalls, refusesForGood, reranks, respondsInShape, respondsOverSockets, speaksMessages, speaksResponses,
  usesTools
} from './text-surfaces.js'

export interface Endpoint {
  /** What it does with real engines, in the client that people use for it. */
  readonly works: ReadonlyArray<(t: Test, url: string) => Promise<void>>
  /** One request that names a model; null for an endpoint that takes none. */
  readonly ask: ((url: string, model: string) => PromiseLike<unknown>) | null
}

const messages = [{ role: 'user' as const, content: 'hi' }]

const rerank = (path: string): Endpoint => ({
  works: [(t, url) => reranks(t, url, path)],
  ask: (url, model) => openai(url).post(path, { body: { model, query: 'x', documents: ['y'] } })
})

const dot = (): ReturnType<typeof toFile> => toFile(encodePng({ width: 1, height: 1, rgb: Buffer.alloc(3) }), 'dot.png', { type: 'image/png' })

/** Every endpoint of `/v1`, with what shows that unmodified clients can use it. */
export const endpoints: Readonly<Record<string, Endpoint>> = {
  'GET /v1/models': { works: [listsModels], ask: null },
  'GET /v1/models/*': { works: [findsModels], ask: (url, model) => openai(url).models.retrieve(model) },
  'POST /v1/chat/completions': {
    works: [chats, callsTools, keepsToShape, usesTools, refusesForGood],
    ask: (url, model) => openai(url).chat.completions.create({ model, messages })
  },
  'POST /v1/completions': { works: [completes], ask: (url, model) => openai(url).completions.create({ model, prompt: 'x' }) },
  'POST /v1/embeddings': { works: [recalls], ask: (url, model) => openai(url).embeddings.create({ model, input: 'x' }) },
  'POST /v1/rerank': rerank('/rerank'),
  'POST /v1/rerankings': rerank('/rerankings'),
  'POST /v1/fim/completions': { works: [fillsIn], ask: (url, model) => openai(url).post('/fim/completions', { body: { model, prompt: 'x' } }) },
  'POST /v1/tokenize': { works: [countsInTokens], ask: (url, model) => openai(url).post('/tokenize', { body: { model, prompt: 'x' } }) },
  'POST /v1/detokenize': { works: [countsInTokens], ask: (url, model) => openai(url).post('/detokenize', { body: { model, tokens: [1] } }) },
  'POST /v1/score': { works: [scores], ask: (url, model) => openai(url).post('/score', { body: { model, text_1: 'x', text_2: 'y' } }) },
  'POST /v1/moderations': { works: [moderates], ask: (url, model) => openai(url).moderations.create({ model, input: 'x' }) },
  'POST /v1/responses': { works: [speaksResponses, respondsInShape], ask: (url, model) => openai(url).responses.create({ model, input: 'x' }) },
  'POST /v1/responses/input_tokens': {
    works: [countsInputTokens], ask: (url, model) => openai(url).responses.inputTokens.count({ model, input: 'x' })
  },
  'POST /v1/responses/compact': { works: [compacts], ask: (url, model) => openai(url).responses.compact({ model, input: 'x' }) },
  'GET /v1/responses': { works: [respondsOverSockets], ask: null },
  'GET /v1/responses/:id': { works: [keepsResponses], ask: (url, id) => openai(url).responses.retrieve(id) },
  'DELETE /v1/responses/:id': { works: [keepsResponses], ask: (url, id) => openai(url).responses.delete(id) },
  'GET /v1/responses/:id/input_items': { works: [keepsResponses], ask: (url, id) => openai(url).responses.inputItems.list(id) },
  'POST /v1/responses/:id/cancel': { works: [keepsResponses], ask: null },
  'POST /v1/conversations': { works: [keepsConversations], ask: null },
  'GET /v1/conversations/:id': { works: [keepsConversations], ask: (url, id) => openai(url).conversations.retrieve(id) },
  'POST /v1/conversations/:id': { works: [keepsConversations], ask: null },
  'DELETE /v1/conversations/:id': { works: [keepsConversations], ask: (url, id) => openai(url).conversations.delete(id) },
  'POST /v1/conversations/:id/items': { works: [keepsConversations], ask: null },
  'GET /v1/conversations/:id/items': { works: [keepsConversations], ask: (url, id) => openai(url).conversations.items.list(id) },
  'GET /v1/conversations/:id/items/:item': { works: [keepsConversations], ask: null },
  'DELETE /v1/conversations/:id/items/:item': { works: [keepsConversations], ask: null },
  'POST /v1/messages': { works: [speaksMessages], ask: (url, model) => anthropic(url).messages.create({ model, max_tokens: 5, messages }) },
  'POST /v1/messages/count_tokens': { works: [countsTokens], ask: (url, model) => anthropic(url).messages.countTokens({ model, messages }) },
  'POST /v1/audio/speech': { works: [speaks], ask: (url, model) => openai(url).audio.speech.create({ model, input: 'x', voice: 'alloy' }) },
  'POST /v1/audio/transcriptions': {
    works: [hears],
    ask: async (url, model) => openai(url).audio.transcriptions.create({ model, file: await toFile(wavOf(0.1), 'a.wav') })
  },
  'POST /v1/audio/translations': {
    works: [translates],
    ask: async (url, model) => openai(url).audio.translations.create({ model, file: await toFile(wavOf(0.1), 'a.wav') })
  },
  'GET /v1/audio/models': { works: [listsAudioModels], ask: null },
  'GET /v1/audio/voices': { works: [listsVoices], ask: (url, model) => openai(url).get('/audio/voices', { query: { model } }) },
  'GET /v1/realtime': { works: [talks], ask: null },
  'POST /v1/realtime/client_secrets': {
    works: [makesClientSecrets],
    ask: (url, model) => openai(url).realtime.clientSecrets.create({ session: { type: 'realtime', model } })
  },
  'POST /v1/realtime/calls': { works: [tellsTheWayIn], ask: null },
  'POST /v1/realtime/calls/:call_id/:verb': { works: [tellsTheWayIn], ask: null },
  'POST /v1/realtime/sessions': { works: [tellsTheWayIn], ask: null },
  'POST /v1/realtime/transcription_sessions': { works: [tellsTheWayIn], ask: null },
  'POST /v1/files': { works: [keepsFiles], ask: null },
  'GET /v1/files': { works: [keepsFiles], ask: null },
  'GET /v1/files/:file_id': { works: [keepsFiles], ask: null },
  'GET /v1/files/:file_id/content': { works: [keepsFiles], ask: null },
  'DELETE /v1/files/:file_id': { works: [keepsFiles], ask: null },
  'POST /v1/batches': { works: [batches], ask: null },
  'GET /v1/batches': { works: [batches], ask: null },
  'GET /v1/batches/:batch_id': { works: [batches], ask: null },
  'POST /v1/batches/:batch_id/cancel': { works: [batches], ask: null },
  'POST /v1/images/generations': { works: [paints], ask: (url, model) => openai(url).images.generate({ model, prompt: 'x' }) },
  'POST /v1/images/edits': { works: [repaints], ask: async (url, model) => openai(url).images.edit({ model, prompt: 'x', image: await dot() }) },
  'POST /v1/images/variations': { works: [repaints], ask: async (url, model) => openai(url).images.createVariation({ model, image: await dot() }) }
}

/** The test's model was not made for it, and the engine says so for good. */
/** A gap is filled by a model that knows of gaps, and by no other. */
async function fillsIn (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const body = { model: 'agent', prompt: 'a', suffix: 'b' }
  t.match(await client.post('/fim/completions', { body }), { choices: [{ message: { content: demoSentence }, finish_reason: 'stop' }] })
  t.match(await client.completions.create(body), { choices: [{ text: demoSentence, finish_reason: 'stop' }] })
  t.match(await client.completions.create({ ...body, max_tokens: 4 }), { choices: [{ finish_reason: 'length' }], usage: { completion_tokens: 4 } })
  let text = ''
  for await (const { choices } of await client.completions.create({ ...body, stream: true })) text += choices[0]?.text ?? ''
  t.equal(text, demoSentence)
  for (const path of ['/fim/completions', '/completions']) {
    const refused = await client.post(path, { body: { ...body, model: 'caller' } }).catch((error: unknown) => error)
    t.match(refused, { message: /[Ii]nfill/ }, path)
  }
}

async function countsInTokens (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const prompt = 'Hello there, h\u00e9llo'
  const counted = await client.post<{ count: number, tokens: number[], token_strs: string[], max_model_len: number }>('/tokenize', {
    body: { model: 'agent', prompt, add_special_tokens: false, return_token_strs: true }
  })
  t.equal(counted.count, counted.tokens.length)
  t.ok(counted.count > 0 && counted.token_strs.length === counted.count && counted.max_model_len > 0)
  t.match(await client.post('/detokenize', { body: { model: 'agent', tokens: counted.tokens } }), { prompt: /Hello there/ })
  const chat = await client.post<{ count: number }>('/tokenize', { body: { model: 'agent', messages } })
  t.ok(chat.count > 0)
}

async function scores (t: Test, url: string): Promise<void> {
  const documents = ['about dogs 2', 'about cats 9', 'nothing', 'something 5']
  const { data } = await openai(url).post<{ data: Array<{ score: number }> }>('/score', { body: { model: 'rerank', text_1: 'cats', text_2: documents } })
  t.equal(data.length, 4)
  const ranked = await fetch(`${url}/v2/rerank`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ model: 'rerank', query: 'cats', documents, top_n: 2 })
  })
  const { results } = await ranked.json() as { results: Array<{ index: number, relevance_score: number }> }
  t.strictSame(results.map(({ index }) => index), [1, 3])
  t.ok(Math.abs(results[0]!.relevance_score - data[1]!.score) < 1e-3)
}

/** A model that chats is no guard model. */
async function moderates (t: Test, url: string): Promise<void> {
  const refused = await openai(url).moderations.create({ model: 'agent', input: 'x' }).catch((error: unknown) => error)
  t.match(refused, { status: 422, code: 'moderations.not_a_guard' })
}

/** A file of requests, answered, and another one that is given up. */
async function batches (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const row = (id: string, model: string, tokens = 4): string => JSON.stringify({
    custom_id: id, method: 'POST', url: '/v1/chat/completions', body: { model, messages, max_tokens: tokens }
  })
  const begin = async (...rows: readonly string[]): Promise<OpenAI.Batch> => {
    const { id } = await client.files.create({ purpose: 'batch', file: await toFile(Buffer.from(rows.join('\n')), 'requests.jsonl') })
    return await client.batches.create({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' })
  }
  let batch = await begin(row('a', 'agent'), row('b', 'nobody'))
  for (const end = performance.now() + 300_000; batch.status !== 'completed' && performance.now() < end;) {
    await new Promise(resolve => { setTimeout(resolve, 50) })
    batch = await client.batches.retrieve(batch.id)
  }
  t.match(batch, { status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
  t.match(await (await client.files.content(batch.output_file_id!)).text(), /"custom_id":"a".*chat\.completion/)
  t.match(await (await client.files.content(batch.error_file_id!)).text(), /"custom_id":"b".*model\.not_found/)
  t.match(await client.batches.cancel((await begin(row('c', 'endless', 1_000_000))).id), { status: /^cancel/ })
  t.ok((await client.batches.list()).data.length >= 2)
}

async function keepsFiles (t: Test, url: string): Promise<void> {
  const { files } = openai(url)
  const { id, bytes } = await files.create({ purpose: 'batch', file: await toFile(Buffer.from('{}'), 'requests.jsonl') })
  t.strictSame([bytes, await (await files.content(id)).text(), (await files.retrieve(id)).filename], [2, '{}', 'requests.jsonl'])
  t.equal((await files.list()).data[0]!.id, id)
  t.match(await files.delete(id), { deleted: true })
  t.notOk((await files.list()).data.some(known => known.id === id))
}

async function listsModels (t: Test, url: string): Promise<void> {
  const ids: string[] = []
  for await (const { id } of openai(url).models.list()) ids.push(id)
  t.ok(ids.includes('svc/agent') && ids.includes('svc/endless'), ids.join(' '))
  const entries = await anthropic(url).get<{ data: Array<{ id: string }> }>('/v1/models')
  t.strictSame(entries.data.map(({ id }) => id), ids, 'the same for a client of another maker')
}

async function findsModels (t: Test, url: string): Promise<void> {
  t.match(await openai(url).models.retrieve('svc/agent'), { id: 'svc/agent', object: 'model', owned_by: 'svc' })
}
