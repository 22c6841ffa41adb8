import t from 'tap'
import { provider as stt } from '../../../../plugins/providers/stt-engine/index.js'
import { FORM_TYPE, formOf } from './form.js'
import { audioGateway, fakeSlot } from './support.js'
import { answerWithHash, takeUploads, type UploadEngine } from './upload-engine.js'

const { form } = stt.surfaces.translation!

t.test('an engine that translates by a field gets it behind the model, in a form that is whole and as long as it says', async t => {
  let engine: UploadEngine | null = null
  const gateway = await audioGateway(t, {
    provider: { surfaces: { translation: { path: '/v1/audio/translations', streaming: false, body: 'multipart', form: form! } } },
    slots: { stt: fakeSlot('transcription', '[model]\ndefault = "whisper-large"\n') },
    files: { 'var/lib/svc/registry/registry.toml': '[models.whisper-large]\npath = "/dev/null"\n' },
    onStart: started => { engine = takeUploads(started.engine, answerWithHash) }
  })
  const file = Buffer.from('RIFF\r\n--x')
  for (const chunked of [false, true]) {
    const body = formOf(['file', file], ['model', 'svc/stt'], ['response_format', 'text'])
    const answer = await gateway.fetch('/v1/audio/translations', {
      method: 'POST', headers: { 'content-type': FORM_TYPE },
      body: chunked ? new Blob([body]).stream() : body, ...(chunked ? { duplex: 'half' } : {})
    } as RequestInit)
    t.equal(answer.status, 200, await answer.text())
    const { url, headers, whole } = engine!.uploads.at(-1)!
    const expected = formOf(['file', file], ['model', 'whisper-large'], ['translate', 'true'], ['response_format', 'text'])
    t.equal(url, '/v1/audio/transcriptions')
    t.equal((await whole).body.toString(), expected.toString())
    if (!chunked) t.equal(headers['content-length'], String(expected.length))
  }
})

t.test('one with a path of its own gets the form as it came, and a name that clients send by default means the only slot', async t => {
  let engine: UploadEngine | null = null
  const gateway = await audioGateway(t, {
    slots: { stt: fakeSlot('transcription', '[model]\ndefault = "whisper-large"\n') },
    files: { 'var/lib/svc/registry/registry.toml': '[models.whisper-large]\npath = "/dev/null"\n' },
    onStart: started => { engine = takeUploads(started.engine, answerWithHash) }
  })
  const answer = await gateway.fetch('/v1/audio/translations', {
    method: 'POST', headers: { 'content-type': FORM_TYPE }, body: formOf(['model', 'whisper-1'], ['file', Buffer.from('x')])
  })
  t.equal(answer.status, 200, await answer.text())
  const { url, whole } = engine!.uploads.at(-1)!
  t.strictSame([url, (await whole).body.toString()], ['/v1/audio/translations', formOf(['model', 'whisper-large'], ['file', Buffer.from('x')]).toString()])
})

t.test('whisper.cpp translates by a field, speaches on a path', async t => {
  const slot = (options: object): Parameters<NonNullable<typeof form>>[0] => ({ options }) as never
  const byField = { path: '/v1/audio/transcriptions', fields: { translate: 'true' } }
  t.strictSame(form!(slot({}), 'whisper-base'), byField)
  t.strictSame(form!(slot({ engine: 'whisper-cpp' }), null), byField)
  t.strictSame(form!(slot({}), 'Systran/faster-whisper-small'), {})
  t.strictSame(form!(slot({}), null), {})
})
