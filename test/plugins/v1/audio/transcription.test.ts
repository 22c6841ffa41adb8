import { createHash, randomBytes } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../../../wire/wire-gateway.js'
import { BOUNDARY, FORM_TYPE, formOf, startUpload, type Part, type SlowUpload } from './form.js'
import { audioGateway, fakeSlot, type AudioGateway, type AudioOptions } from './support.js'
import { answerWithHash, takeUploads, type SeenUpload, type UploadEngine } from './upload-engine.js'

const MIB = 1024 * 1024
const MODEL = '[model]\ndefault = "whisper-large"\n'

interface Studio extends AudioGateway {
  readonly engine: UploadEngine
  /** What each upload that reaches the engine meets; set by the test. */
  arrived: (upload: SeenUpload) => void
  post (form: Buffer, headers?: Readonly<Record<string, string>>): Promise<Response>
}

/** A gateway with a transcription slot `stt` that is up, on an engine that reads uploads as the test says. */
async function studio (t: Test, options: AudioOptions & { readonly cold?: boolean } = {}): Promise<Studio> {
  let engine: UploadEngine | null = null
  const found: { arrived: (upload: SeenUpload) => void } = { arrived: answerWithHash }
  const gateway = await audioGateway(t, {
    slots: { stt: fakeSlot('transcription', MODEL), json: fakeSlot('transcription'), agent: fakeSlot('llm') },
    files: { 'var/lib/svc/registry/registry.toml': '[models.whisper-large]\npath = "/dev/null"\n' },
    ...options,
    onStart: async started => {
      engine = takeUploads(started.engine, upload => found.arrived(upload))
      await options.onStart?.(started)
    }
  })
  if (options.cold !== true) await gateway.slots.load('stt')
  return Object.defineProperties(Object.assign(gateway, found, {
    post: (form: Buffer, headers: Readonly<Record<string, string>> = {}) =>
      gateway.fetch('/v1/audio/transcriptions', { method: 'POST', headers: { 'content-type': FORM_TYPE, ...headers }, body: form })
  }), {
    engine: { get: () => engine },
    arrived: { get: () => found.arrived, set: next => { found.arrived = next } }
  }) as unknown as Studio
}

const DISK_ALONE = '[server]\nupload_memory_bytes = 0\n'

function sha256 (bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Nothing is left of any request: no lease, no entry, no file. */
async function nothingLeft (t: Test, gateway: AudioGateway): Promise<void> {
  await until(() => gateway.gateway.inference().dispatcher.active.size === 0, 'no request is left')
  await until(() => gateway.slots.status('stt').inFlight === 0, 'no lease is left')
  t.same(await readdir(join(gateway.home, 'var/lib/svc/spool')).catch(() => []), [], 'no file is left')
}

t.test('the form arrives byte for byte but for the model, wherever that stands', async t => {
  const gateway = await studio(t)
  const file = randomBytes(3 * MIB)
  const others: readonly Part[] = [['language', 'd\u00e9'], ['response_format', 'verbose_json'], ['timestamp_granularities[]', 'word'], ['file', file]]
  for (let at = 0; at <= others.length; at++) {
    for (const model of ['stt', 'svc/stt', 'whisper-large']) {
      const parts = (name: string): Part[] => [...others.slice(0, at), ['model', name], ...others.slice(at)]
      const expected = formOf(...parts('whisper-large'))
      const response = await gateway.post(formOf(...parts(model)), { 'x-request-id': `r-${at}`, 'authorization': 'Bearer secret' })
      t.equal(response.status, 200)
      t.same(await response.json(), { text: sha256(expected) }, `${model} at ${at}`)
      const { headers, url } = gateway.engine.uploads.at(-1)!
      t.match(headers, { 'content-type': FORM_TYPE, 'content-length': String(expected.length), 'x-request-id': `r-${at}` })
      t.equal(headers.authorization, undefined)
      t.equal(url, '/v1/audio/transcriptions')
    }
  }
  await nothingLeft(t, gateway)
})

t.test('a form without a known length goes out in chunks, and odd clients are understood', async t => {
  const gateway = await studio(t)
  const form = formOf(['file', randomBytes(MIB)], ['model', ' stt '])
  const upload = startUpload(gateway.baseUrl, { 'transfer-encoding': 'chunked' })
  for (let from = 0; from < form.length; from += 100_000) await upload.send(form.subarray(from, from + 100_000))
  upload.end()
  t.match(await upload.answer, { status: 200, text: new RegExp(sha256(Buffer.from(form.toString('latin1').replace(' stt ', 'whisper-large'), 'latin1'))) })
  t.match(gateway.engine.uploads[0]!.headers, { 'transfer-encoding': 'chunked', 'content-length': undefined })

  const bare = Buffer.from(`preamble\n--x y\ncontent-disposition: form-data; name=model\n\nstt\n--x y--\n`)
  const response = await gateway.post(bare, { 'content-type': 'Multipart/Form-Data; charset=utf-8; Boundary="x y"' })
  t.same(await response.json(), { text: sha256(Buffer.from(bare.toString().replace('stt', 'whisper-large'))) })
})

t.test('refusals, while the client still sends as well', async t => {
  const gateway = await studio(t)
  const big = randomBytes(2 * MIB)
  const cases: ReadonlyArray<readonly [form: Buffer, type: string, status: number, code: string]> = [
    [formOf(['file', big]), FORM_TYPE, 400, 'request.missing_model'],
    [formOf(['model', '  '], ['file', big]), FORM_TYPE, 400, 'request.missing_model'],
    [formOf(['model', Buffer.from('stt')], ['file', big]), FORM_TYPE, 400, 'request.missing_model'],
    [Buffer.alloc(0), FORM_TYPE, 400, 'request.missing_model'],
    [formOf(['model', 'nobody'], ['file', big]), FORM_TYPE, 404, 'model.not_found'],
    [formOf(['model', 'agent'], ['file', big]), FORM_TYPE, 404, 'dispatch.no_route'],
    [formOf(['file', big], ['model', 'x'.repeat(5000)]), FORM_TYPE, 400, 'request.invalid_form'],
    [Buffer.from(`--${BOUNDARY}\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`), FORM_TYPE, 400, 'request.invalid_form'],
    [big, 'multipart/form-data', 400, 'request.invalid_form'],
    [Buffer.from('{"model":"stt","file":"x"}'), 'application/json', 415, 'request.unsupported_media_type'],
    [Buffer.from('model=stt'), 'application/x-www-form-urlencoded', 415, 'request.unsupported_media_type']
  ]
  for (const [form, type, status, code] of cases) {
    const response = await gateway.post(form, { 'content-type': type })
    t.equal(response.status, status, code)
    t.match(await response.json(), { error: { code, request_id: /./ } })
    t.equal(response.headers.get('x-should-retry'), 'false')
  }
  const missing = await (await gateway.post(formOf(['file', 'x']))).json()
  t.match(missing, { error: { param: 'model', details: { field: 'model', path: '/audio/transcriptions' } } })
  const none = await gateway.fetch('/v1/audio/transcriptions', { method: 'POST' })
  t.match([none.status, await none.json()], [415, { error: { code: 'request.unsupported_media_type' } }], 'no body at all')
  t.equal(gateway.engine.uploads.length, 0, 'none of them reached the engine')

  const upload = startUpload(gateway.baseUrl)
  await upload.send(formOf(['model', 'nobody'], ['file', big]).subarray(0, -MIB))
  const { status, text } = await upload.answer
  t.match([status, text], [404, /model\.not_found/], 'the answer comes before the end of the upload')
  upload.end(Buffer.alloc(MIB))
  await nothingLeft(t, gateway)
})

t.test('a provider that takes no forms is no target', async t => {
  const gateway = await studio(t, { provider: { surfaces: { transcription: { path: '/x', streaming: false, body: 'json' } } } })
  const response = await gateway.post(formOf(['model', 'stt'], ['file', 'x']))
  t.match([response.status, await response.json()], [404, { error: { code: 'dispatch.no_route', message: /as JSON, not as a form/ } }])
})

t.test('while the slot loads, the upload waits on disk and its client is free', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const gateway = await studio(t, { cold: true, onStart: () => gate, svc: DISK_ALONE })
  const file = randomBytes(8 * MIB)
  const form = formOf(['model', 'stt'], ['file', file])
  const upload = startUpload(gateway.baseUrl)
  await upload.send(form)
  upload.end()
  const requests = gateway.gateway.inference().requests
  await until(() => requests.list()[0]?.bytes_in === form.length, 'all of it is here')
  t.match(requests.list()[0], { model: 'stt', slot: 'stt', phase: 'loading', bytes_in: form.length })
  t.same(await readdir(join(gateway.home, 'var/lib/svc/spool')), [], 'the file has no name')
  release()
  t.match(await upload.answer, { status: 200, text: new RegExp(sha256(formOf(['model', 'whisper-large'], ['file', file]))) })
  await nothingLeft(t, gateway)
})

t.test('a slot that cannot be loaded is told while the client still sends', async t => {
  const gateway = await studio(t, { cold: true, onStart: () => { throw new Error('out of memory') } })
  const upload = startUpload(gateway.baseUrl)
  await upload.send(formOf(['model', 'stt'], ['file', randomBytes(2 * MIB)]).subarray(0, -MIB))
  t.match(await upload.answer, { status: 502, text: /slot\.load_failed.*out of memory/ })
  upload.end(Buffer.alloc(MIB))
  await nothingLeft(t, gateway)
})

t.test('a client that leaves frees everything at once, in every phase', async t => {
  let release = (): void => {}
  const gate = new Promise<void>(resolve => { release = resolve })
  const gateway = await studio(t, { cold: true, onStart: () => gate })
  const { dispatcher, slots, requests } = gateway.gateway.inference()
  const form = formOf(['model', 'stt'], ['file', randomBytes(4 * MIB)])
  const leaves = async (name: string, upload: SlowUpload, engine?: SeenUpload): Promise<void> => {
    upload.leave()
    if (engine !== undefined) t.equal(await engine.closed, 'aborted', name)
    await until(() => dispatcher.active.size === 0, name)
    await nothingLeft(t, gateway)
  }
  const partly = async (bytes: Buffer): Promise<SlowUpload> => {
    const upload = startUpload(gateway.baseUrl, { 'content-length': String(form.length + MIB) })
    await upload.send(bytes)
    await until(() => requests.list()[0]?.bytes_in === bytes.length, 'what was sent is here')
    return upload
  }

  await leaves('before the model is known', await partly(formOf(['file', randomBytes(2 * MIB)]).subarray(0, MIB)))
  const waiting = await partly(form)
  await until(() => slots.status('stt').waiting === 1, 'it waits for the slot')
  await leaves('while the slot loads', waiting)
  release()
  await gateway.slots.load('stt')

  gateway.arrived = upload => upload.resume()
  const flowing = await partly(form.subarray(0, 2 * MIB))
  const reads = await gateway.engine.upload(0)
  await until(() => reads.bytes > MIB, 'the engine reads')
  await leaves('in an upload that the engine reads', flowing, reads)

  gateway.arrived = () => {}
  const stalled = await partly(form.subarray(0, -100))
  const refuses = await gateway.engine.upload(1)
  await leaves('in an upload that the engine does not read', stalled)
  // one that does not read its connection does not hear of its end either
  refuses.resume()
  t.equal(await refuses.closed, 'aborted')

  gateway.arrived = upload => upload.resume()
  const whole = startUpload(gateway.baseUrl)
  whole.end(form)
  const thinks = await gateway.engine.upload(2)
  await thinks.whole
  await leaves('while the engine thinks', whole, thinks)

  gateway.arrived = upload => {
    upload.resume()
    upload.response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"transcript.text.delta","delta":"a"}\n\n')
  }
  const answered = startUpload(gateway.baseUrl)
  answered.end(form)
  await new Promise(resolve => { answered.request.once('response', resolve) })
  await leaves('in the answer', answered, await gateway.engine.upload(3))
})

t.test('a stalled engine slows the client down only until the disk takes over', async t => {
  const gateway = await studio(t)
  gateway.arrived = () => {}
  const form = formOf(['model', 'stt'], ['file', randomBytes(24 * MIB)])
  const upload = startUpload(gateway.baseUrl)
  upload.end(form)
  const seen = await gateway.engine.upload(0)
  await until(() => gateway.gateway.inference().requests.list()[0]?.bytes_in === form.length, 'all of it is here although nobody reads')
  t.ok(seen.bytes < MIB)
  answerWithHash(seen)
  const { sha256: hash } = await seen.whole
  t.match((await upload.answer).text, hash)
  t.equal(seen.bytes, form.length + 'whisper-large'.length - 'stt'.length)
  await nothingLeft(t, gateway)
})

t.test('uploads are limited in size, told or not', async t => {
  const gateway = await studio(t, { svc: `[server]\nupload_limit_bytes = ${MIB}\n` })
  const form = formOf(['model', 'stt'], ['file', randomBytes(MIB)])
  const told = await gateway.post(form)
  t.match([told.status, await told.json()], [413, { error: { code: 'request.too_large', details: { limit_bytes: MIB } } }])
  t.equal(gateway.engine.uploads.length, 0, 'a length that is too much is refused before anything is read')

  const silent = startUpload(gateway.baseUrl, { 'transfer-encoding': 'chunked' })
  await silent.send(form.subarray(0, MIB / 2))
  const begun = await gateway.engine.upload(0)
  void silent.send(form.subarray(MIB / 2))
  t.match(await silent.answer, { status: 413, text: /request\.too_large/ })
  t.equal(await begun.closed, 'aborted', 'the engine is told that no more comes')
  silent.leave()
  t.equal((await gateway.post(formOf(['model', 'stt'], ['file', randomBytes(MIB / 2)]))).status, 200)
  await nothingLeft(t, gateway)
})

t.test('a client that stops sending is sent away, one that waits for the engine is not', async t => {
  const gateway = await studio(t, { svc: '[server]\nupload_idle_timeout_s = 1\n' })
  const upload = startUpload(gateway.baseUrl)
  await upload.send(formOf(['model', 'stt'], ['file', 'x'.repeat(1000)]).subarray(0, 500))
  t.match(await upload.answer, { status: 408, text: /request\.upload_stalled/ })
  t.equal(await (await gateway.engine.upload(0)).closed, 'aborted')
  gateway.arrived = seen => {
    seen.resume()
    setTimeout(() => { answerWithHash(seen) }, 1_500)
  }
  t.equal((await gateway.post(formOf(['model', 'stt'], ['file', 'x']))).status, 200)
  await nothingLeft(t, gateway)
})

t.test('engines that answer early, die, or refuse', async t => {
  const gateway = await studio(t)
  const form = formOf(['model', 'stt'], ['file', randomBytes(16 * MIB)])
  const json = { 'content-type': 'application/json' }

  gateway.arrived = upload => { upload.response.writeHead(400, json).end('{"error":"no file"}') }
  const early = await gateway.post(form)
  t.match([early.status, await early.text()], [400, '{"error":"no file"}'], 'a refusal before the engine has read the form')

  gateway.arrived = upload => {
    upload.resume()
    void until(() => upload.bytes > MIB, 'some of it').then(() => upload.response.destroy())
  }
  const dead = await gateway.post(form)
  t.match([dead.status, await dead.json()], [502, { error: { code: 'dispatch.upstream_unavailable', details: { slot: 'stt' } } }])

  const cases: ReadonlyArray<readonly [status: number, body: string, expected: number, code: RegExp]> = [
    [500, '{"error":"Failed to execute ffmpeg command."}', 415, /audio\.unsupported_format.*wav, mp3, flac, ogg, m4a or webm.*"upstream_status":500/],
    [400, 'Command \'[\'ffprobe\']\' returned non-zero exit status 1', 415, /audio\.unsupported_format/],
    [422, 'subprocess died', 415, /"param":"file"/],
    [400, '{"error":"failed to read audio data"}', 400, /^\{"error":"failed to read audio data"\}$/],
    [200, '{"text":"the ffmpeg manual"}', 200, /ffmpeg manual/]
  ]
  for (const [status, body, expected, pattern] of cases) {
    gateway.arrived = upload => {
      upload.resume()
      void upload.whole.then(() => upload.response.writeHead(status, json).end(body))
    }
    const response = await gateway.post(formOf(['model', 'stt'], ['file', 'x']))
    t.equal(response.status, expected, body)
    t.match(await response.text(), pattern)
  }
  await nothingLeft(t, gateway)
})

t.test('a gateway that stops ends uploads, in every phase, and keeps nothing', async t => {
  const gateway = await studio(t, { svc: '[server]\nshutdown_grace_s = 0\n' })
  gateway.arrived = upload => upload.resume()
  const looking = startUpload(gateway.baseUrl)
  await looking.send(formOf(['file', randomBytes(MIB)]).subarray(0, -50))
  const sending = startUpload(gateway.baseUrl)
  await sending.send(formOf(['model', 'stt'], ['file', randomBytes(MIB)]).subarray(0, -50))
  await gateway.engine.upload(0)
  await gateway.gateway.stop()
  for (const upload of [looking, sending]) t.match(await upload.answer, { status: 503, text: /gateway\.stopping/ })
  t.same(await readdir(join(gateway.home, 'var/lib/svc/spool')).catch(() => []), [])
})

t.test('without room on disk an upload that must wait is refused, one that flows is not', async t => {
  const gateway = await studio(t, { svc: DISK_ALONE })
  await writeFile(join(gateway.home, 'var/lib/svc/spool'), 'in the way')
  const form = formOf(['file', randomBytes(2 * MIB)], ['model', 'stt'])
  const response = await gateway.post(form)
  t.match([response.status, response.headers.get('retry-after'), await response.json()], [503, '30', { error: { code: 'gateway.spool_failed' } }])
  t.ok(gateway.logs.some(({ level, message }) => level === 'error' && /cannot be stored on disk/.test(message)), 'the log tells')
  t.equal((await gateway.post(formOf(['model', 'stt'], ['file', randomBytes(2 * MIB)]))).status, 200)
})
