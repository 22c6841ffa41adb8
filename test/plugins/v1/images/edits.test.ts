import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import OpenAI, { APIUserAbortError, toFile, type APIError, type Uploadable } from 'openai'
import t from 'tap'
import { chunk, decodePng, encodePng, type Picture } from '../../providers/imagegen/fake/png.js'
import { formGateway } from './form-gateway.js'
import { imageGateway } from '../../providers/imagegen/image-gateway.js'
import { BOUNDARY, FORM_TYPE, formOf, type Part } from '../audio/form.js'

interface Answer { readonly _svc: Readonly<Record<string, unknown>> }

type Fields = Readonly<Record<string, string | Buffer | undefined>>

/** A picture of one colour whose left half is transparent. */
function halfOpen (width: number, height: number): Picture {
  const alpha = Buffer.alloc(width * height, 255)
  for (let i = 0; i < alpha.length; i++) if (i % width < width / 2) alpha[i] = 0
  return { width, height, rgb: Buffer.alloc(width * height * 3, 200), alpha }
}

const plain = (width: number, height: number): Picture => ({ width, height, rgb: Buffer.alloc(width * height * 3, 200) })
const png = (picture: Picture): Promise<Uploadable> => toFile(encodePng(picture), 'picture.png', { type: 'image/png' })
const pictureOf = ({ b64_json: image }: { readonly b64_json?: string | undefined }): Picture => decodePng(Buffer.from(image!, 'base64'))

/** Pixels that are as they were, of one row in the middle. */
function kept ({ width, height, rgb }: Picture): readonly boolean[] {
  const row = Math.floor(height / 2) * width * 3
  return Array.from({ length: width }, (_, x) => rgb.subarray(row + x * 3, row + x * 3 + 3).equals(Buffer.alloc(3, 200)))
}

t.test('the openai client changes images', async t => {
  const gateway = await imageGateway(t)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'anything', maxRetries: 0 })
  const failure = (work: Promise<unknown>): Promise<APIError> => work.then(() => { throw new Error('it worked') }, (error: unknown) => error as APIError)
  const leftBehind = (): Promise<string[]> => readdir(join(gateway.dataRoot, 'input'))

  t.test('behind a mask everything is new, and nothing else is', async t => {
    for (const [model, workflow] of [['sdxl-turbo', 'sdxl_turbo_inpaint'], ['sd-1.5-pruned-emaonly', 'sd15_inpaint']] as const) {
      const answer = await client.images.edit({
        model, prompt: 'a hat', image: await png(plain(64, 64)), mask: await png(halfOpen(64, 64)), n: 2, response_format: 'b64_json'
      })
      t.match((answer as unknown as Answer)._svc, { workflow, model, batch_size: 2, denoise: 1, width: 64, height: 64 })
      const pictures = answer.data!.map(pictureOf)
      t.equal(pictures.length, 2)
      for (const picture of pictures) {
        const row = kept(picture)
        t.ok(row.slice(33).every(Boolean), 'what the mask covers is as it was')
        t.ok(row.slice(0, 31).filter(Boolean).length < 4, 'what it leaves open is not')
      }
      t.notOk(pictures[0]!.rgb.equals(pictures[1]!.rgb), 'two different images')
    }
    t.strictSame(await leftBehind(), [], 'the pictures are no longer with the engine')
  })

  t.test('without one the whole picture is changed, in its own size, and can be known again', async t => {
    const answer = await client.images.edit({ model: 'sdxl-turbo', prompt: 'at night', image: await png(plain(300, 200)), ...{ seed: 7 } })
    t.match((answer as unknown as Answer)._svc, { workflow: 'sdxl_turbo_image', denoise: 0.75, width: 296, height: 200, seed: 7 })
    const image = Buffer.from(await (await gateway.fetch(answer.data![0]!.url!)).arrayBuffer())
    t.match(decodePng(image), { width: 296, height: 200 })
    t.equal(answer.data![0]!.b64_json, image.toString('base64'), 'as well, for clients that say nothing and read only this')
    t.notOk(image.includes('prompt'), 'without what the engine writes into it')
    const scaled = await client.images.edit({
      model: 'sd-1.5-pruned-emaonly', prompt: 'x', image: await png(plain(300, 200)), size: '128x64' as '256x256', ...{ strength: 0.3, steps: 3 }
    })
    t.match((scaled as unknown as Answer)._svc, { width: 128, height: 64, denoise: 0.3, steps: 3 })
  })

  t.test('a variation needs no words', async t => {
    const answer = await client.images.createVariation({ model: 'sd-1.5-pruned-emaonly', image: await png(plain(64, 128)), n: 2, response_format: 'b64_json' })
    t.match((answer as unknown as Answer)._svc, { workflow: 'sd15_image', denoise: 0.6, width: 64, height: 128, batch_size: 2 })
    t.equal(answer.data!.length, 2)
    t.equal(answer.data![0]!.url, undefined)
    const plainly = await client.images.createVariation({ model: 'sd-1.5-pruned-emaonly', image: await png(plain(64, 64)) })
    t.match(plainly.data, [{ url: /^\/api\/images\/cache/, b64_json: /^iVBOR/ }])
  })

  t.test('the model may be anywhere in the form', async t => {
    const post = (...parts: readonly Part[]): Promise<Response> =>
      gateway.fetch('/v1/images/edits', { method: 'POST', headers: { 'content-type': FORM_TYPE }, body: formOf(...parts) })
    const image = encodePng(plain(64, 64))
    const parts: readonly Part[] = [['prompt', 'one\ntwo'], ['image[]', image], ['response_format', 'b64_json']]
    for (let at = 0; at <= parts.length; at++) {
      const answer = await post(...parts.slice(0, at), ['model', 'sdxl-turbo'], ...parts.slice(at))
      t.equal(answer.status, 200, `model at ${at}`)
      await answer.arrayBuffer()
    }
  })

  t.test('what cannot be done is refused by the name of its field, and nothing is started for it', async t => {
    const image = encodePng(plain(64, 64))
    const good: Readonly<Record<string, string | Buffer>> = { model: 'sdxl-turbo', prompt: 'x', image }
    const wrongSize = Buffer.concat([image.subarray(0, 16), Buffer.from('ffffffffffffffff', 'hex'), image.subarray(24)])
    const moving = Buffer.concat([image.subarray(0, 33), chunk('acTL', Buffer.from([0, 0, 0x10, 0, 0, 0, 0, 0])), image.subarray(33)])
    const cases: ReadonlyArray<readonly [what: Fields, status: number, code: string, param: string, path?: string]> = [
      [{ model: undefined }, 400, 'request.missing_model', 'model'],
      [{ prompt: ' ' }, 422, 'image.prompt_required', 'prompt'],
      [{ image: undefined }, 400, 'validation.invalid', 'image'],
      [{ image: Buffer.from('GIF89a') }, 400, 'validation.invalid', 'image'],
      [{ image: image.subarray(0, 20) }, 400, 'validation.invalid', 'image'],
      [{ image: wrongSize }, 400, 'validation.invalid', 'image'],
      [{ image: moving }, 400, 'validation.invalid', 'image'],
      [{ 'image[]': image }, 400, 'validation.invalid', 'image'],
      [{ mask: image }, 400, 'validation.invalid', 'mask'],
      [{ mask: encodePng(halfOpen(64, 32)) }, 400, 'validation.invalid', 'mask'],
      [{ n: 'many' }, 400, 'validation.invalid', 'n'],
      [{ n: '1e999' }, 400, 'validation.invalid', 'n'],
      [{ size: 'banana' }, 400, 'validation.invalid', 'size'],
      [{ response_format: 'gif' }, 400, 'validation.invalid', 'response_format'],
      [{ strength: '0' }, 400, 'validation.invalid', 'strength'],
      [{ steps: '11' }, 400, 'validation.invalid', 'steps'],
      [{ stream: 'true' }, 400, 'validation.invalid', 'stream'],
      [{ mask: encodePng(halfOpen(64, 64)) }, 400, 'validation.invalid', 'mask', '/v1/images/variations'],
      [{ model: 'dall-e-2' }, 404, 'image.model_not_curated', 'model'],
      [{ model: 'flux-schnell' }, 404, 'image.workflow_not_found', 'model']
    ]
    const before = (await gateway.engine()).seen.length
    for (const [changed, status, code, param, path = '/v1/images/edits'] of cases) {
      const given = Object.entries({ ...good, ...changed })
      const fields = given.flatMap(([name, value]): Part[] => value === undefined ? [] : [[name, value]])
      const answer = await gateway.fetch(path, { method: 'POST', headers: { 'content-type': FORM_TYPE }, body: formOf(...fields) })
      t.match([answer.status, await answer.json()], [status, { error: { code, param } }], `${Object.keys(changed).join()} ${status}`)
    }
    for (const [body, type, code] of [
      [Buffer.from('{}'), 'text/plain', 'request.unsupported_media_type'], [Buffer.from('x'), 'multipart/form-data', 'request.invalid_form'],
      [Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\nsdxl`), FORM_TYPE, 'request.invalid_form'], [Buffer.alloc(0), FORM_TYPE, 'request.invalid_form']
    ] as const) {
      const answer = await gateway.fetch('/v1/images/edits', { method: 'POST', headers: { 'content-type': type }, body })
      t.match(await answer.json(), { error: { code } })
    }
    t.equal((await gateway.engine()).seen.length, before, 'the engine was asked nothing')
  })

  t.test('a client that leaves frees the engine, which keeps none of its pictures', async t => {
    await gateway.engine({ holdAtStep: 1 })
    const controller = new AbortController()
    const pending = failure(client.images.edit({ model: 'sdxl-turbo', prompt: 'x', image: await png(plain(64, 64)) }, { signal: controller.signal }))
    await gateway.engineUntil(state => state.running !== null, 'it runs')
    t.equal((await leftBehind()).length, 1)
    controller.abort()
    t.ok(await pending instanceof APIUserAbortError)
    await gateway.engineUntil(state => state.running === null && state.sockets === 0, 'the engine is free')
    await gateway.engine({ holdAtStep: null })
    await client.images.edit({ model: 'sdxl-turbo', prompt: 'x', image: await png(plain(64, 64)) })
    t.strictSame(await leftBehind(), [])
  })
})

t.test('an upstream, and an engine that takes the form itself, get it as it came but for the model', async t => {
  const { gateway, runtime, upstream, answer } = await formGateway(t)
  const form = (model: string): Buffer => formOf(['prompt', 'one\ntwo'], ['image[]', Buffer.from('any\r\n--bytes')], ['image[]', Buffer.from('two')], ['model', model], ['quality', 'high'])
  const post = (path: string, model: string): Promise<Response> =>
    gateway.fetch(path, { method: 'POST', headers: { 'content-type': FORM_TYPE }, body: form(model) })
  for (const path of ['/v1/images/edits', '/v1/images/variations']) {
    const given = await post(path, 'up/gpt-image-9')
    t.strictSame([given.status, await given.text()], [200, answer])
    const { url, body, headers } = upstream.calls.at(-1)!
    t.match([url, headers], [path, { 'content-type': FORM_TYPE }])
    t.ok(body.equals(form('gpt-image-9')), path)
  }
  const edited = await post('/v1/images/edits', 'img')
  t.strictSame([edited.status, await edited.text()], [200, answer])
  const { url, body } = runtime.engine('img').requests.at(-1)!
  t.strictSame([url, body.equals(form('painter'))], ['/edit', true], 'an engine')
  const refused = await post('/v1/images/variations', 'img')
  t.match([refused.status, await refused.json()], [404, { error: { code: 'dispatch.no_route', param: 'model' } }], 'the engine makes no variations')
})
