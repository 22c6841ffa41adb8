import type { APIError } from 'openai'
import OpenAI, { APIUserAbortError, BadRequestError, NotFoundError, toFile } from 'openai'
import t from 'tap'
import { decodePng } from '../../providers/imagegen/fake/png.js'
import { cachedFiles, imageGateway } from '../../providers/imagegen/image-gateway.js'

interface Answer {
  readonly created: number
  readonly data: ReadonlyArray<{ readonly url?: string, readonly b64_json?: string }>
  readonly _svc: Readonly<Record<string, unknown>>
}

t.test('the openai client makes images', async t => {
  const gateway = await imageGateway(t, { img: '[image]\ndefault_size = "256x128"\n' })
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const failure = (work: Promise<unknown>): Promise<APIError> => work.then(() => { throw new Error('it worked') }, (error: unknown) => error as APIError)

  t.test('b64_json, n = 2, a size of its own, options through extra_body', async t => {
    const answer = await client.images.generate({
      model: 'sdxl-turbo', prompt: 'a red apple', n: 2, size: '512x512', response_format: 'b64_json',
      ...{ extra_body: { seed: 7, steps: 2, cfg: 1.5, negative_prompt: 'a pear' } }
    } as OpenAI.ImageGenerateParamsNonStreaming)
    t.equal(answer.data!.length, 2)
    const pictures = answer.data!.map(image => decodePng(Buffer.from(image.b64_json!, 'base64')))
    for (const { width, height } of pictures) t.strictSame([width, height], [512, 512])
    t.notOk(pictures[0]!.rgb.equals(pictures[1]!.rgb), 'two different images')
    t.match((answer as unknown as Answer)._svc, {
      workflow: 'sdxl_turbo_simple', checkpoint: 'sd_xl_turbo_1.0_fp16.safetensors', model: 'sdxl-turbo', model_class: 'sdxl-turbo', slot: 'img',
      width: 512, height: 512, batch_size: 2, seed: 7, steps: 2, cfg: 1.5, negative_prompt: 'a pear', filename_prefix: /^svc-[0-9a-f]{12}$/,
      prompt_id: /^[0-9a-f-]{36}$/, duration_ms: Number
    })
    t.ok(Math.abs(answer.created - Date.now() / 1000) < 60)
  })

  t.test('a client that does not say gets a path that leads to the image, and the image itself', async t => {
    const answer = await client.images.generate({ model: 'sd-1.5-pruned-emaonly', prompt: 'a pear' })
    const url = answer.data![0]!.url!
    t.match(url, /^\/api\/images\/cache\/[0-9a-f-]{36}\.png$/)
    const image = await gateway.fetch(url)
    t.strictSame([image.status, image.headers.get('content-type'), image.headers.get('cache-control')],
      [200, 'image/png', 'public, max-age=31536000, immutable'])
    const bytes = Buffer.from(await image.arrayBuffer())
    t.equal(answer.data![0]!.b64_json, bytes.toString('base64'))
    const { width, height } = decodePng(bytes)
    t.strictSame([width, height], [256, 128], 'the size of the slot\'s defaults')
    t.match((answer as unknown as Answer)._svc, { workflow: 'sd15_simple', steps: 20, cfg: 7, checkpoint: 'v1-5-pruned-emaonly.safetensors' })
    t.equal((await gateway.fetch(url.replace('.png', ''))).status, 200, 'also without its ending')
    t.equal((await cachedFiles(gateway.home)).length, 1, 'base64 answers leave nothing behind')
    const asked = await client.images.generate({ model: 'sd-1.5-pruned-emaonly', prompt: 'a pear', response_format: 'url' })
    t.match(asked.data, [{ url: /^\/api\/images\/cache/, b64_json: undefined }])
  })

  t.test('a bad image request is refused in words of the SDK', async t => {
    const bad = await failure(client.images.generate({ model: 'sdxl-turbo', prompt: 'x', size: 'banana' as '256x256' }))
    t.ok(bad instanceof BadRequestError)
    t.match(bad, { code: 'validation.invalid', message: /1024x1024/ })
    const unknown = await failure(client.images.generate({ model: 'dall-e-3', prompt: 'x' }))
    t.ok(unknown instanceof NotFoundError)
    t.match(unknown, { code: 'image.model_not_curated', param: 'model', message: /sdxl-turbo, sd-1.5-pruned-emaonly/ })
    const large = await failure(client.images.generate({ model: 'flux-schnell', prompt: 'x' }))
    t.match(large, { status: 404, code: 'image.workflow_not_found', message: /no workflow supports it yet/ })
    t.match(await failure(client.images.generate({ model: 'img', prompt: 'x' })), { status: 404, code: 'image.model_not_curated' }, 'the slot has no model of its own')
    t.match(await failure(client.images.generate({ prompt: 'x' })), { status: 400, code: 'request.missing_model', param: 'model' })
    t.match(await failure(client.images.generate({ model: 'sdxl-turbo', prompt: '' })), { status: 422, code: 'image.prompt_required', param: 'prompt' })
    t.match(await failure(client.images.generate({ model: 'sdxl-turbo', prompt: 'x', ...{ extra_body: { steps: 11 } } })),
      { status: 400, code: 'validation.invalid', param: 'steps', message: /from 1 to 10/ })
  })

  t.test('an aborted image request frees the engine', async t => {
    await gateway.engine({ holdAtStep: 1 })
    const controller = new AbortController()
    const pending = failure(client.images.generate({ model: 'sdxl-turbo', prompt: 'x' }, { signal: controller.signal }))
    await gateway.engineUntil(state => state.running !== null, 'it runs')
    controller.abort()
    t.ok(await pending instanceof APIUserAbortError)
    await gateway.engineUntil(state => state.running === null && state.sockets === 0, 'the engine is free')
    await gateway.engine({ holdAtStep: null })
  })

  t.test('models lists what the live slot makes', async t => {
    const rows = (await client.models.list()).data.filter(model => model.owned_by === 'img')
    t.strictSame(rows.map(model => model.id), ['sdxl-turbo', 'sd-1.5-pruned-emaonly'])
  })
})

t.test('a name that a client insists on makes images of the model behind it, in Base64 without being asked', async t => {
  const gateway = await imageGateway(t, { svc: '[aliases]\n"gpt-image-1" = "sdxl-turbo"\n' })
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const made = await client.images.generate({ model: 'gpt-image-1', prompt: 'a red apple', size: '64x64' as '256x256' })
  t.match(made, { data: [{ b64_json: /^iVBOR/ }], _svc: { model: 'sdxl-turbo' } })
  const image = await toFile(Buffer.from(made.data![0]!.b64_json!, 'base64'), 'apple.png', { type: 'image/png' })
  t.match(await client.images.edit({ model: 'gpt-image-1', prompt: 'a green apple', image }), { data: [{ b64_json: /^iVBOR/ }], _svc: { model: 'sdxl-turbo' } })
  t.match(await client.images.createVariation({ model: 'gpt-image-1', image }), { data: [{ b64_json: /^iVBOR/ }], _svc: { model: 'sdxl-turbo' } })
})

t.test('the body, in every spelling', async t => {
  const gateway = await imageGateway(t, { img: '[model]\ndefault = "sd-1.5-pruned-emaonly"\n[image]\ndefault_steps = 3\n' })
  const made = async (body: object): Promise<Readonly<Record<string, unknown>>> => {
    const answer = await gateway.post({ model: 'sdxl-turbo', prompt: 'x', size: '64x64', ...body })
    t.equal(answer.status, 200, await answer.clone().text())
    return ((await answer.json()) as Answer)._svc
  }
  t.match(await made({ seed: 5, steps: 2 }), { seed: 5, steps: 2 }, 'flat')
  t.match(await made({ extra_body: { seed: 6 } }), { seed: 6, steps: 3 }, 'nested; steps of the slot')
  t.match(await made({ seed: 5, extra_body: { seed: 6, steps: 0 } }), { seed: 6, steps: 3 }, 'both: the special place wins; 0 leaves it open')
  t.match(await made({ n: null, size: null, response_format: null, seed: null, extra_body: null }), { batch_size: 1, width: 1024, height: 1024 }, 'null is not given')
  t.match(await made({ size: 'auto', n: 1, user: 'me', quality: 'hd', style: 'vivid' }), { width: 1024 }, 'what is not ours is ignored')
  t.match(await made({ size: '101X70' }), { width: 96, height: 64 }, 'down to a multiple of 8, any case')
  t.match(await made({ size: '20x9000' }), { width: 64, height: 2048 }, 'brought within')
  t.match(await made({ n: 0 }), { batch_size: 1 })
  t.match(await made({ n: 50 }), { batch_size: 8 })
  t.match(await made({ model: 'img' }), { model: 'sd-1.5-pruned-emaonly' }, 'a slot by its name: its own model')
  const seeds = await Promise.all([made({}), made({ seed: -1 }), made({})])
  t.equal(new Set(seeds.map(({ seed }) => seed)).size, 3, 'a seed of its own for everybody')
  for (const { seed } of seeds) t.ok(Number.isSafeInteger(seed))

  for (const [body, code, status] of [
    ['{', 'request.invalid_json', 400], ['[]', 'request.not_an_object', 400], [{ model: 'sdxl-turbo' }, 'image.prompt_required', 422],
    [{ model: 'sdxl-turbo', prompt: '  ' }, 'image.prompt_required', 422], [{ model: ' ', prompt: 'x' }, 'request.missing_model', 400],
    [{ model: 'sdxl-turbo', prompt: 'x', n: 1.5 }, 'validation.invalid', 400], [{ model: 'sdxl-turbo', prompt: 'x', stream: true }, 'validation.invalid', 400],
    [{ model: 'sdxl-turbo', prompt: 'x', response_format: 'png' }, 'validation.invalid', 400],
    [{ model: 'sdxl-turbo', prompt: 'x', seed: 2 ** 60 }, 'validation.invalid', 400],
    [{ model: 'sdxl-turbo', prompt: 'x', extra_body: { seed: 'a' } }, 'validation.invalid', 400]
  ] as const) {
    const answer = await gateway.post(body)
    const { error } = await answer.json() as { error: { code: string } }
    t.match([answer.status, error.code], [status, code], JSON.stringify(body))
  }
})

t.test('identical requests for a cold slot are two images', async t => {
  const gateway = await imageGateway(t)
  const answers = await Promise.all([1, 2].map(async () => await (await gateway.post({ model: 'sdxl-turbo', prompt: 'x', size: '64x64' })).json() as Answer))
  t.not(answers[0]!._svc.seed, answers[1]!._svc.seed)
  t.not(answers[0]!.data[0]!.url, answers[1]!.data[0]!.url)
})

t.test('without an image slot a known model is told apart from an unknown one', async t => {
  const gateway = await imageGateway(t, { files: { 'etc/svc/slots/img.toml': 'type = "image"\nprovider = "imagegen"\ndevice = "cpu"\nenabled = false\n' } })
  const code = async (model: string): Promise<unknown> => (await (await gateway.post({ model, prompt: 'x' })).json() as { error: { code: string } }).error.code
  t.equal(await code('sdxl-turbo'), 'model.not_loaded')
  t.equal(await code('nothing'), 'image.model_not_curated')
})
