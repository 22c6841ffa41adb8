import t from 'tap'
import { decodePng, encodePng, type Picture } from '../../providers/imagegen/fake/png.js'
import { formGateway } from './form-gateway.js'
import { imageGateway } from '../../providers/imagegen/image-gateway.js'
import { formParts } from '../../../../kernel/contract/index.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const PATH = '/v1/images/edits'

function picture (width: number, height: number, isHalfOpen = false): Picture {
  const plain = { width, height, rgb: Buffer.alloc(width * height * 3, 200) }
  const alpha = Buffer.from(Array.from({ length: width * height }, (_, i) => i % width < width / 2 ? 0 : 255))
  return isHalfOpen ? { ...plain, alpha } : plain
}

const dataUrl = (shown: Picture): string => `data:image/png;base64,${encodePng(shown).toString('base64')}`

interface Answer {
  readonly data: ReadonlyArray<{ readonly url?: string, readonly b64_json?: string }>
  readonly _svc: Readonly<Record<string, unknown>>
}

t.test('an image is changed by a request in JSON', async t => {
  const gateway = await imageGateway(t)
  const post = (body: unknown, path = PATH): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers: JSON_TYPE, body: typeof body === 'string' ? body : JSON.stringify(body) })
  const good = { model: 'sdxl-turbo', prompt: 'a hat', images: [{ image_url: dataUrl(picture(64, 64)) }] }

  t.test('its picture and its mask are data URLs', async t => {
    const answer = await (await post({ ...good, mask: { image_url: dataUrl(picture(64, 64, true)) }, n: 2, response_format: 'b64_json', seed: 7 })).json() as Answer
    t.match(answer._svc, { workflow: 'sdxl_turbo_inpaint', batch_size: 2, width: 64, height: 64, seed: 7 })
    t.equal(answer.data.length, 2)
    t.match(decodePng(Buffer.from(answer.data[0]!.b64_json!, 'base64')), { width: 64, height: 64 })
  })

  t.test('an image that was made here is named by its path', async t => {
    const made = await (await post(good)).json() as Answer
    const again = await post({ ...good, images: [{ image_url: made.data[0]!.url }], extra_body: { strength: 0.3 } })
    t.match([again.status, await again.json()], [200, { _svc: { workflow: 'sdxl_turbo_image', denoise: 0.3 } }])
  })

  t.test('what cannot be done is refused by the name of its field, and nothing is started for it', async t => {
    const url = good.images[0]!.image_url
    const wide = dataUrl(picture(64, 32, true))
    const cases: ReadonlyArray<readonly [changed: object, status: number, code: string, param: string]> = [
      [{ model: ' ' }, 400, 'request.missing_model', 'model'],
      [{ loras: [{ name: 'hat', weight: 1 }] }, 400, 'validation.invalid', 'loras'],
      [{ extra_body: { control: {} } }, 400, 'validation.invalid', 'control'],
      [{ prompt: '' }, 422, 'image.prompt_required', 'prompt'],
      [{ images: undefined }, 400, 'validation.invalid', 'images'],
      [{ images: [] }, 400, 'validation.invalid', 'images'],
      [{ images: 'data:' }, 400, 'validation.invalid', 'images'],
      [{ images: Array.from({ length: 17 }, () => ({ image_url: url })) }, 400, 'validation.invalid', 'images'],
      [{ images: [{ image_url: url }, { image_url: url }] }, 400, 'validation.invalid', 'images'],
      [{ images: [url] }, 400, 'validation.invalid', 'images.0'],
      [{ images: [{}] }, 400, 'validation.invalid', 'images.0'],
      [{ images: [{ image_url: url, file_id: 'file-1' }] }, 400, 'validation.invalid', 'images.0'],
      [{ images: [{ file_id: 'file-1' }] }, 400, 'validation.invalid', 'images.0.file_id'],
      [{ images: [{ image_url: 'https://example.com/a.png' }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ images: [{ image_url: 'file:///etc/passwd' }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ images: [{ image_url: '/etc/passwd' }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ images: [{ image_url: '/api/images/cache/../../../../etc/passwd' }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ images: [{ image_url: '/api/images/cache/00000000-0000-0000-0000-000000000000.png' }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ images: [{ image_url: `data:image/png${';a'.repeat(8_000_000)}` }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ images: [{ image_url: 'data:image/png;base64,****' }] }, 400, 'validation.invalid', 'images.0.image_url'],
      [{ mask: { image_url: url } }, 400, 'validation.invalid', 'mask'],
      [{ mask: { image_url: wide } }, 400, 'validation.invalid', 'mask'],
      [{ mask: 7 }, 400, 'validation.invalid', 'mask'],
      [{ n: 'many' }, 400, 'validation.invalid', 'n'],
      [{ stream: true }, 400, 'validation.invalid', 'stream'],
      [{ model: 'dall-e-2' }, 404, 'image.model_not_curated', 'model']
    ]
    const before = (await gateway.engine()).seen.length
    for (const [changed, status, code, param] of cases) {
      const answer = await post({ ...good, ...changed })
      t.match([answer.status, await answer.json()], [status, { error: { code, param } }], JSON.stringify(changed).slice(0, 80))
    }
    t.match(await (await post('{"model":')).json(), { error: { code: 'request.invalid_json' } })
    t.match(await (await post(`{"a":${'['.repeat(2000)}${']'.repeat(2000)}}`)).json(), { error: { code: 'request.too_complex' } })
    t.match(await (await post(good, '/v1/images/variations')).json(), { error: { code: 'request.unsupported_media_type' } }, 'variations have no such form')
    t.equal((await gateway.engine()).seen.length, before, 'the engine was asked nothing')
  })
})

t.test('an upstream gets the JSON as it came but for the model, and an engine that takes forms gets one', async t => {
  const { gateway, runtime, upstream, answer } = await formGateway(t)
  const asked = {
    prompt: 'one\ntwo', quality: 'high', n: 2, user: 'é', images: [{ image_url: 'https://example.com/a.png' }, { file_id: 'file-1' }], mask: { file_id: 'file-2' }
  }
  const post = (body: object): Promise<Response> => gateway.fetch(PATH, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })
  const given = await post({ ...asked, model: 'up/gpt-image-9' })
  t.strictSame([given.status, await given.text()], [200, answer])
  const { url, body, headers } = upstream.calls.at(-1)!
  t.match([url, headers], [PATH, { 'content-type': /^application\/json/ }])
  t.strictSame(JSON.parse(body.toString()), { ...asked, model: 'gpt-image-9' })

  const image = encodePng(picture(8, 8))
  const inlined = { image_url: `data:image/png;base64,${image.toString('base64')}` }
  const edited = await post({ ...asked, model: 'img', images: [inlined, inlined], mask: null })
  t.strictSame([edited.status, await edited.text()], [200, answer])
  const sent = runtime.engine('img').requests.at(-1)!
  const parts = formParts(sent.body, String(sent.headers['content-type']))
  const shown = parts.map(({ name, filename, bytes }) => [name, filename === null ? bytes.toString() : bytes.equals(image)])
  t.strictSame(shown, [
    ['model', 'painter'], ['prompt', 'one\ntwo'], ['quality', 'high'], ['n', '2'], ['user', 'é'], ['image[]', true], ['image[]', true]
  ])
})
