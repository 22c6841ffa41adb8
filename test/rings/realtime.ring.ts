import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { containerGateway } from '../e2e/engine-gateways.js'
import { soundIn, talkTo } from '../e2e/realtime-surface.js'
import { root } from '../repository.js'
import { lacking } from './support/clients.js'

const run = promisify(execFile)
const ESPEAK = '/usr/bin/espeak-ng'

t.setTimeout(300_000)

/** A slot that speaks with espeak-ng, as a process beside the containers. */
const voice = {
  'etc/svc/engines/espeak.toml': 'name = "espeak"\napiVersion = 1\nneeds_model = false\nslot_types = ["tts"]\n' +
    `process = ["node", ${JSON.stringify(join(root, 'test/rings/browser/espeak-engine.mjs'))}, "{port}", "{host}"]\n` +
    '[health]\npath = "/health"\n[surfaces.speech]\npath = "/v1/audio/speech"\n',
  'etc/svc/slots/voice.toml': 'type = "tts"\nprovider = "espeak"\ndevice = "cpu"\nruntime = "process"\n'
}

/** What espeak-ng makes of a text, at 24 kHz. */
async function said (text: string): Promise<Buffer> {
  const { stdout } = await run('sox', ['|espeak-ng --stdout ' + JSON.stringify(text), '-t', 'raw', '-r', '24000', '-c', '1', '-b', '16', '-e', 'signed', '-'],
    { encoding: 'buffer', maxBuffer: 16 * 1024 * 1024 })
  return stdout
}

/** As a microphone gives it, 100 ms at a time. */
function* pieces (sound: Buffer): Generator<string> {
  for (let at = 0; at < sound.length; at += 4_800) yield sound.subarray(at, at + 4_800).toString('base64')
}

async function isThere (t: Test): Promise<boolean> {
  const are = await Promise.all([ESPEAK, '/usr/bin/sox'].map(program => access(program).then(() => true, () => false)))
  if (!are.includes(false)) return true
  lacking(t, 'there is no espeak-ng or no sox; run: test/engines/install-packages.sh speech')
  return false
}

t.test('a conversation by voice, on a real llama.cpp, whisper-server and espeak-ng', async t => {
  if (!await isThere(t)) return
  const gateway = await containerGateway(t, '', voice)
  if (gateway === null) return
  const silence = Buffer.alloc(2 * 24_000)

  await t.test('turns of real speech begin and end where it does', async t => {
    const { send, next } = await talkTo(t, gateway.url)
    send({ type: 'session.update', session: { type: 'realtime', audio: { input: { transcription: { model: 'stt' } } } } })
    const [first, second] = await Promise.all([said('Good morning, how are you today?'), said('What time is it?')])
    for (const audio of pieces(Buffer.concat([silence, first!, silence, silence, second!, silence]))) send({ type: 'input_audio_buffer.append', audio })
    for (const [from, sound] of [[1_000, first!], [3_000 + first!.length / 48, second!]] as const) {
      const { audio_start_ms: start } = await next('input_audio_buffer.speech_started')
      const { audio_end_ms: end } = await next('input_audio_buffer.speech_stopped')
      // 300 ms of padding in front, 500 ms of silence behind; espeak-ng begins and ends with some of its own
      t.ok(Math.abs(start - (from - 300)) < 250, `it begins at ${start} ms, said at ${from} ms`)
      t.ok(Math.abs(end - (from + sound.length / 48 + 500)) < 450, `it ends at ${end} ms, said until ${from + sound.length / 48} ms`)
    }
    t.match(await next('conversation.item.input_audio_transcription.completed'), { transcript: /^$/ })
  })

  await t.test('an answer is spoken, and a user who speaks ends it', async t => {
    const { send, next, events } = await talkTo(t, gateway.url)
    const output = { model: 'voice' } as { voice?: string }
    send({ type: 'session.update', session: { type: 'realtime', audio: { output } } })
    send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Who are you?' }] } })
    send({ type: 'response.create' })
    const { response } = await next('response.done')
    t.match(response, { status: 'completed', output: [{ content: [{ transcript: demoSentence }] }] })
    const seconds = soundIn(events).length / 48_000
    t.ok(seconds > 1 && seconds < 30, `${seconds} s of speech`)

    const endless = await talkTo(t, gateway.url, 'endless')
    endless.send({ type: 'session.update', session: { type: 'realtime', audio: { output } } })
    endless.send({ type: 'response.create' })
    await endless.next('response.output_audio.delta')
    for (const audio of pieces(await said('Stop it now please.'))) endless.send({ type: 'input_audio_buffer.append', audio })
    t.match((await endless.next('response.done')).response, { status: 'cancelled', status_details: { reason: 'turn_detected' } })
    for (let left = 1; left > 0;) {
      const { requests } = await (await fetch(`${gateway.url}/api/requests`)).json() as { requests: ReadonlyArray<{ surface: string }> }
      left = requests.filter(({ surface }) => surface === 'chat' || surface === 'speech').length
    }
  })
  t.equal(await gateway.kill('SIGTERM'), 0)
})
