import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import { liveHome, startLive, writeHome, type LiveGateway } from '../../../e2e/live-gateway.js'
import { skipped, testEngine } from '../../../kernel/runtime/engines.js'
import { FORM_TYPE, formOf, type Part } from '../../v1/audio/form.js'
import { wavOf } from '../audio/sound.js'
import { freePort } from '../../../ports.js'
import { emptyGgml } from './empty-ggml.js'
import { whisperServer } from './fake-whisper-server.js'

t.setTimeout(300_000)

const SPEECH = wavOf(3.5, 16_000)
/** So that hearing nothing takes a fraction of a second. */
const QUICK = '[server]\nextra_args = "--no-fallback --audio-ctx 32 --threads 1"\n'

async function gatewayWith (t: Test, host: string, image: string): Promise<LiveGateway> {
  const ports = [await freePort(), await freePort()]
  const slot = (port: number, convert: boolean): string =>
    `type = "transcription"\nprovider = "stt-engine"\ndevice = "cpu"\nport = ${port}\n${QUICK}[model]\ndefault = "ears"\n[options]\nengine = "whisper-cpp"\nconvert = ${convert}\n`
  const home = await liveHome(t, {
    'models/ears.bin': emptyGgml(),
    'etc/svc/svc.toml': '[runtime]\ndriver = "docker"\nstop_with_gateway = true\n[slots]\nautostart = false\n',
    'etc/svc/slots/plain.toml': slot(ports[0]!, false),
    'etc/svc/slots/stt.toml': slot(ports[1]!, true)
  })
  await writeHome(home, { 'var/lib/svc/registry/registry.toml': `[models.ears]\npath = "${join(home, 'models/ears.bin')}"\n` })
  const gateway = await startLive(t, home, { DOCKER_HOST: host, SVC_TOOLBOX_IMAGE_WHISPER: image })
  // a gateway that is killed leaves its containers to the next one
  t.teardown(() => gateway.kill('SIGTERM'))
  return gateway
}

t.test('the real whisper-server in a container', async t => {
  const docker = await testEngine(t, 'docker')
  if (docker === null) return
  const image = process.env.SVC_TEST_WHISPER_IMAGE
  if (image === undefined) return void skipped(t, 'SVC_TEST_WHISPER_IMAGE is not set; run: eval "$(test/engines/up.sh)"')
  const gateway = await gatewayWith(t, docker.host, image)
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const file = await toFile(SPEECH, 'speech.wav')

  await t.test('the openai client is answered by it', async t => {
    t.equal((await client.audio.transcriptions.create({ file, model: 'stt' })).text.trim(), '', 'it hears nothing')
    const verbose = await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'verbose_json' })
    t.ok(Math.abs(Number(verbose.duration) - 3.5) < 0.01, 'the file has arrived whole')
    t.match(await client.audio.transcriptions.create({ file, model: 'stt', response_format: 'vtt' }), /^WEBVTT/)
    const events: string[] = []
    for await (const { type } of await client.audio.transcriptions.create({ file, model: 'stt', stream: true })) events.push(type)
    t.same(events, ['transcript.text.done'], 'it hears nothing, in the events that were asked for')
    const noise = await toFile(Buffer.from('this is no audio'), 'speech.mp3')
    const failure = await client.audio.transcriptions.create({ file: noise, model: 'stt' }).catch((error: unknown) => error)
    t.match(failure, { status: 415, code: 'audio.unsupported_format' }, 'what its decoder says is translated')
  })

  await t.test('the fake of the other tests answers as it does', async t => {
    const cases: ReadonlyArray<readonly Part[]> = [
      ...['json', 'text', 'srt', 'vtt', 'verbose_json', 'unheard_of'].map((format): readonly Part[] => [['file', SPEECH], ['response_format', format]]),
      [['file', SPEECH], ['temperature', 'warm']],
      [['file', Buffer.from('this is no audio')]],
      [['language', 'en']]
    ]
    for (const parts of cases) {
      const form = formOf(['model', 'plain'], ...parts)
      const real = await fetch(`${gateway.url}/v1/audio/transcriptions`, { method: 'POST', headers: { 'content-type': FORM_TYPE }, body: form })
      await real.arrayBuffer()
      const { status = 200, headers } = await whisperServer(form, FORM_TYPE)
      t.same([real.status, real.headers.get('content-type')], [status, headers!['content-type']], JSON.stringify(parts.map(([name, value]) => [name, String(value).slice(0, 20)])))
    }
  })
})
