import OpenAI, { BadRequestError, NotFoundError } from 'openai'
import t, { type Test } from 'tap'
import vectorRoutes from '../../../plugins/v1/vectors/index.js'
import { createFakeEngine } from '../../../kernel/testing/index.js'
import { wireGateway, type WireGateway, type WireOptions } from '../wire-gateway.js'

const JSON_TYPE = { 'content-type': 'application/json' }

function slot (type: string, model: string): string {
  return `type = "${type}"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "${model}"\n`
}

function setup (t: Test, { files = {}, ...rest }: WireOptions = {}): Promise<WireGateway> {
  return wireGateway(t, {
    ...rest,
    plugins: [vectorRoutes],
    files: {
      'etc/svc/slots/embed.toml': slot('embedding', 'e-model'),
      'etc/svc/slots/rerank.toml': slot('reranking', 'r-model'),
      'var/lib/svc/registry/registry.toml': ['fake', 'e', 'r'].map(name => `[models.${name}-model]\npath = "/dev/null"\n`).join(''),
      ...files
    },
    onStart: ({ slot, engine }) => {
      if (slot === 'embed') engine.answer(({ body }) => ({ headers: JSON_TYPE, chunks: [embedded(JSON.parse(body.toString()) as EmbedBody)] }))
      else engine.answer({ headers: JSON_TYPE, chunks: ['{"results":[{"index":1,"relevance_score":0.9},{"index":0,"relevance_score":0.1}]}'] })
    }
  })
}

interface EmbedBody { readonly input: string | readonly unknown[], readonly encoding_format?: string }

/** Two exact numbers for each input, in the format that was asked for. */
function embedded ({ input, encoding_format: format }: EmbedBody): string {
  const inputs = typeof input === 'string' || typeof input[0] === 'number' ? [input] : input
  const data = inputs.map((text, index) => {
    const vector = Float32Array.of(index + 0.5, String(text).length)
    return { object: 'embedding', index, embedding: format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector] }
  })
  return JSON.stringify({ object: 'list', model: 'e', data, usage: { prompt_tokens: 1, total_tokens: 1 } })
}

t.test('embeddings in the openai client', async t => {
  const gateway = await setup(t)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const vectors = async (params: OpenAI.EmbeddingCreateParams): Promise<unknown> =>
    (await client.embeddings.create(params)).data.map(row => row.embedding)

  t.strictSame(await vectors({ model: 'embed', input: 'four' }), [[0.5, 4]], 'the client asks for base64 by itself')
  const engine = gateway.runtime.engine('embed')
  t.match(JSON.parse(engine.requests.at(-1)!.body.toString()), { model: 'e-model', encoding_format: 'base64' })
  t.strictSame(await vectors({ model: 'e-model', input: ['a', 'bc'], encoding_format: 'float' }), [[0.5, 1], [1.5, 2]])
  t.strictSame(await vectors({ model: 'svc/embed', input: [[1, 2], [3]] }), [[0.5, 3], [1.5, 1]], 'lists of tokens, by virtual name')
  t.ok(await client.embeddings.create({ model: 'agent', input: 'x' }).catch((error: unknown) => error) instanceof NotFoundError, 'a chat slot embeds nothing')
  t.match(await (await gateway.fetch('/v1/embeddings', { method: 'POST', body: '{"input":"x"}' })).json(), { error: { code: 'request.missing_model' } })

  const text = '{ "input" : [[1,  2], [30000000000000000000]], "model":"embed", "user":"\\u00e9", "dimensions": 2.0 }'
  await gateway.fetch('/v1/embeddings', { method: 'POST', body: text })
  t.equal(engine.requests.at(-1)!.body.toString(), text.replace('"embed"', '"e-model"'), 'nothing but the model is touched')

  for (const format of ['float', 'base64'] as const) {
    const other = await client.embeddings.create({ model: 'embed', input: 'x', dimensions: 256, encoding_format: format }).catch((error: unknown) => error)
    t.match(other, { status: 400, code: 'validation.invalid', param: 'dimensions', message: /vectors of 2 numbers/ }, 'engines pass over the length')
    t.equal((await client.embeddings.create({ model: 'embed', input: 'x', dimensions: 2, encoding_format: format })).data.length, 1)
  }
  engine.answer({ status: 400, headers: JSON_TYPE, chunks: ['{"error":{"code":400,"message":"input is too large","type":"invalid_request_error"}}'] })
  t.ok(await client.embeddings.create({ model: 'embed', input: 'x' }).catch((error: unknown) => error) instanceof BadRequestError)
})

t.test('both names of reranking lead to one engine route', async t => {
  const gateway = await setup(t)
  for (const path of ['/v1/rerank', '/v1/rerankings']) {
    for (const model of ['rerank', 'svc/rerank', 'r-model']) {
      const body = JSON.stringify({ query: 'q', documents: ['a', { text: 'b' }], top_n: 2, model })
      const response = await gateway.fetch(path, { method: 'POST', body })
      t.strictSame(await response.json(), { results: [{ index: 1, relevance_score: 0.9 }, { index: 0, relevance_score: 0.1 }] })
      const seen = gateway.runtime.engine('rerank').requests.at(-1)!
      t.strictSame([seen.url, seen.body.toString()], ['/v1/rerank', body.replace(`"model":"${model}"`, '"model":"r-model"')])
    }
  }
  const wrong = await gateway.fetch('/v1/rerank', { method: 'POST', body: '{"model":"embed","query":"q","documents":[]}' })
  t.match(await wrong.json(), { error: { code: 'dispatch.no_route', message: /embedding/ } })
  t.equal(gateway.runtime.started.length, 1, 'a request for the wrong slot starts nothing')
})

t.test('upstreams that embed and rerank', async t => {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  upstream.answer(({ url, body }) => ({ headers: JSON_TYPE, chunks: [url === '/v1/models' ? '{"data":[{"id":"far-embed"}]}' : body] }))
  const gateway = await setup(t, { files: { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.origin}/v1"\nauth_style = "none"\n` } })
  for (const [path, expected] of [['/v1/embeddings', '/v1/embeddings'], ['/v1/rerankings', '/v1/rerank'], ['/v1/rerank', '/v1/rerank']]) {
    const body = '{"model":"far-embed","input":"x","query":"q","documents":["a"]}'
    t.equal(await (await gateway.fetch(path!, { method: 'POST', body })).text(), body)
    t.equal(upstream.requests.at(-1)!.url, expected)
  }
})
