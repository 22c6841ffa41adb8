import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createFakeEngine } from '../../../../kernel/testing/index.js'
import { formOf } from './form.js'
import { audioGateway } from './support.js'
import { FORM_TYPE } from './form.js'
import { takeUploads } from './upload-engine.js'

t.test('audio goes to upstreams as well, with their key and their name of the model', async t => {
  const engine = await createFakeEngine()
  t.teardown(() => engine.close())
  engine.answer(({ url }) => url === '/v1/models'
    ? { headers: { 'content-type': 'application/json' }, chunks: ['{"data":[{"id":"whisper-1"},{"id":"tts-1"}]}'] }
    : { headers: { 'content-type': 'audio/mpeg' }, chunks: ['ID3'] })
  const gateway = await audioGateway(t, {
    files: {
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "openai"\nurl = "${engine.origin}/v1"\nauth_style = "bearer"\nauth_value_env = "UP_KEY"\n`,
      'etc/svc/api.env': 'UP_KEY=sk-up\n'
    }
  })
  const speech = await gateway.speak({ model: 'openai/tts-1', input: 'x' })
  t.match([speech.headers.get('content-type'), await speech.text()], ['audio/mpeg', 'ID3'])
  t.equal(engine.requests.at(-1)!.body.toString(), '{"model":"tts-1","input":"x"}')

  const uploads = takeUploads(engine)
  const file = randomBytes(1024 * 1024)
  const response = await gateway.fetch('/v1/audio/transcriptions', {
    method: 'POST', headers: { 'content-type': FORM_TYPE, 'authorization': 'Bearer theirs' }, body: formOf(['file', file], ['model', 'openai/whisper-1'])
  })
  t.equal(response.status, 200)
  const { headers, url, whole } = uploads.uploads[0]!
  t.match([headers, url], [{ authorization: 'Bearer sk-up' }, '/v1/audio/transcriptions'])
  t.ok((await whole).body.equals(formOf(['file', file], ['model', 'whisper-1'])))
})

t.test('an upload for a model that no list has yet asks the upstreams first', async t => {
  const engine = await createFakeEngine()
  t.teardown(() => engine.close())
  engine.answer({ headers: { 'content-type': 'application/json' }, chunks: ['{"data":[{"id":"whisper-1"}]}'] })
  const gateway = await audioGateway(t, { files: { 'etc/svc/upstreams.toml': `[[upstream]]\nname = "up"\nurl = "${engine.origin}/v1"\nauth_style = "none"\n` } })
  const post = async (model: string): Promise<[number, unknown]> => {
    const response = await gateway.fetch('/v1/audio/transcriptions', { method: 'POST', headers: { 'content-type': FORM_TYPE }, body: formOf(['file', randomBytes(1024)], ['model', model]) })
    return [response.status, await response.json()]
  }
  t.match(await post('whisper-2'), [404, { error: { code: 'model.not_found' } }])
  t.match(await post('whisper-1'), [200, { data: [{ id: 'whisper-1' }] }])
})
