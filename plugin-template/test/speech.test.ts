import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { createTestGateway } from 'svc-gateway/testing'
import plugin, { provider } from '../src/index.js'

const absent = spawnSync('espeak-ng', ['--version']).error !== undefined

/** The real engine, as the child process of a real gateway. */
test('a slot answers speech requests with audio', { skip: absent && 'espeak-ng is not installed' }, async t => {
  const gateway = await createTestGateway({
    plugins: [plugin],
    files: {
      'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n',
      'etc/svc/slots/tts.toml': 'type = "tts"\nprovider = "espeak"\n[options]\nlanguage = "en-gb"\n'
    }
  })
  t.after(() => gateway.close())
  const signal = AbortSignal.timeout(20_000)
  await gateway.slots.load('tts', { signal })
  const client = gateway.slots.client('tts')!
  const speak = async (body: object) => {
    const { status, body: audio } = await client.request({ method: 'POST', path: '/v1/audio/speech', body, signal })
    return { status, audio: await buffer(audio) }
  }
  const words = 'one two three four five six seven eight nine ten'

  await t.test('for as long as the words take, and its header knows it', async () => {
    const once = durationS((await speak({ input: words })).audio)
    const twice = durationS((await speak({ input: `${words} ${words}` })).audio)
    assert.ok(once > 0.2, `${once} s for ten words`)
    assert.ok(twice / once > 1.6 && twice / once < 2.4, `${twice} s for twenty`)
  })

  await t.test('faster, in another voice, without a header', async () => {
    const order = { input: words, voice: 'de', response_format: 'pcm' }
    const { audio: slow } = await speak(order)
    const { audio } = await speak({ ...order, speed: 2 })
    assert.ok(audio.length < slow.length * 0.8, `${audio.length} bytes, ${slow.length} at half the speed`)
    assert.ok(rms(audio) > 500, 'not silence')
  })

  await t.test('and says what it cannot', async () => {
    const { status, audio } = await speak({ input: words, response_format: 'mp3' })
    assert.equal(status, 400)
    assert.equal(JSON.parse(audio.toString()).error.param, 'response_format')
  })

  await t.test('with voices that it lists', async () => {
    assert.ok((await provider.voices!(client, signal)).length > 50)
  })
})

function durationS (wav: Buffer): number {
  assert.equal(wav.toString('latin1', 0, 4) + wav.toString('latin1', 8, 12), 'RIFFWAVE')
  assert.equal(wav.readUInt32LE(4), wav.length - 8)
  assert.equal(wav.readUInt32LE(40), wav.length - 44)
  return wav.readUInt32LE(40) / wav.readUInt32LE(28)
}

function rms (samples: Buffer): number {
  let sum = 0
  for (let at = 0; at < samples.length; at += 2) sum += samples.readInt16LE(at) ** 2
  return Math.sqrt(sum / (samples.length / 2))
}
