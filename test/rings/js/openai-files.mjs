import assert from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import { crc32, deflateSync } from 'node:zlib'
import OpenAI, { toFile } from 'openai'
import { check, failureOf, media, requestsOf, sentence, url } from './check.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything' })
const messages = [{ role: 'user', content: 'Who are you?' }]
const row = (id, body) => JSON.stringify({ custom_id: id, method: 'POST', url: '/v1/chat/completions', body: { model: 'agent', messages, ...body } })
const upload = async text => await client.files.create({ purpose: 'batch', file: await toFile(Buffer.from(text), 'requests.jsonl') })

await check('files: create, retrieve, list, content and delete', async () => {
  const text = row('a', {})
  const file = await upload(text)
  assert.equal(file.bytes, Buffer.byteLength(text))
  assert.equal(file.purpose, 'batch')
  assert.deepEqual(await client.files.retrieve(file.id), file)
  assert.equal((await client.files.waitForProcessing(file.id)).id, file.id)
  const ids = []
  for await (const { id } of client.files.list({ limit: 1, purpose: 'batch' })) ids.push(id)
  assert.ok(ids.includes(file.id))
  assert.equal(await (await client.files.content(file.id)).text(), text)
  assert.equal((await client.files.delete(file.id)).deleted, true)
  let error
  const took = await requestsOf(async () => { error = await failureOf(client.files.retrieve(file.id)) })
  assert.ok(error instanceof OpenAI.NotFoundError, String(error))
  assert.equal(took, 0)
})
await check('a batch, from its file to its answers', async () => {
  const file = await upload([row('a', {}), row('b', { model: 'missing' })].join('\n'))
  let batch = await client.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h', metadata: { of: 'ring' } })
  while (!['completed', 'failed', 'expired', 'cancelled'].includes(batch.status)) {
    await pause(50)
    batch = await client.batches.retrieve(batch.id)
  }
  assert.equal(batch.status, 'completed', JSON.stringify(batch))
  assert.deepEqual(batch.request_counts, { total: 2, completed: 1, failed: 1 })
  assert.deepEqual(batch.metadata, { of: 'ring' })
  const lineOf = async id => JSON.parse(await (await client.files.content(id)).text())
  const answer = await lineOf(batch.output_file_id)
  assert.equal(answer.custom_id, 'a')
  assert.equal(answer.response.body.choices[0].message.content, sentence)
  const refused = await lineOf(batch.error_file_id)
  assert.equal(refused.custom_id, 'b')
  assert.equal(refused.response.status_code, 404)
  const ids = []
  for await (const { id } of client.batches.list({ limit: 1 })) ids.push(id)
  assert.ok(ids.includes(batch.id))
})
await check('a batch that is cancelled', async () => {
  const file = await upload(Array.from({ length: 50 }, (_, i) => row(`r${i}`, { model: 'endless', max_tokens: 1_000_000 })).join('\n'))
  let batch = await client.batches.create({ input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' })
  batch = await client.batches.cancel(batch.id)
  while (batch.status === 'cancelling') {
    await pause(50)
    batch = await client.batches.retrieve(batch.id)
  }
  assert.equal(batch.status, 'cancelled', JSON.stringify(batch))
})

if (media) {
  const isPng = ({ b64_json: text }) => Buffer.from(text, 'base64').subarray(1, 4).toString() === 'PNG'
  const order = { model: 'sdxl-turbo', prompt: 'a red apple', size: '256x256', response_format: 'b64_json' }
  const painted = async () => {
    const { data } = await client.images.generate(order)
    return await toFile(Buffer.from(data[0].b64_json, 'base64'), 'apple.png', { type: 'image/png' })
  }
  const chunk = (type, data) => {
    const bytes = Buffer.alloc(12 + data.length)
    bytes.writeUInt32BE(data.length)
    bytes.write(type, 4, 'latin1')
    bytes.set(data, 8)
    bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), bytes.length - 4)
    return bytes
  }
  /** A PNG of 256 by 256, transparent above the middle. */
  const mask = () => {
    const header = Buffer.from([0, 0, 1, 0, 0, 0, 1, 0, 8, 6, 0, 0, 0])
    const row = 1 + 256 * 4
    const pixels = Buffer.alloc(256 * row)
    for (let y = 128; y < 256; y++) pixels.fill(255, y * row + 1, (y + 1) * row)
    const png = [Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', header), chunk('IDAT', deflateSync(pixels)), chunk('IEND', Buffer.alloc(0))]
    return toFile(Buffer.concat(png), 'mask.png', { type: 'image/png' })
  }
  await check('images.edit, with a mask, from one image and from several', async () => {
    const image = await painted()
    const { data } = await client.images.edit({ ...order, image, mask: await mask(), prompt: 'a hat', n: 2 })
    assert.equal(data.length, 2)
    assert.ok(data.every(isPng))
    assert.ok(isPng((await client.images.edit({ ...order, image: [image], prompt: 'a hat' })).data[0]))
  })
  await check('images.createVariation', async () => {
    const { data } = await client.images.createVariation({ image: await painted(), model: 'sdxl-turbo', response_format: 'b64_json' })
    assert.ok(isPng(data[0]))
  })
  await check('an image that is none is refused once', async () => {
    let error
    const image = await toFile(Buffer.from('GIF89a'), 'a.png', { type: 'image/png' })
    const took = await requestsOf(async () => { error = await failureOf(client.images.edit({ ...order, image })) })
    assert.ok(error instanceof OpenAI.BadRequestError, String(error))
    assert.equal(took, 1)
  })
}
