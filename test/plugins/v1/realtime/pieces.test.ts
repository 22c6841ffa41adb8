import assert from 'node:assert/strict'
import t from 'tap'
import { wavFile } from '../../../../kernel/contract/index.js'
import fc from '../../../property.js'
import { truncate } from '../../../../plugins/v1/realtime/conversation.js'
import { HeardAudio } from '../../../../plugins/v1/realtime/heard-audio.js'
import { resampled, Resampler } from '../../../../plugins/v1/realtime/sound/resample.js'
import { isSpoken, Sentences } from '../../../../plugins/v1/realtime/sentences.js'
import { changedSettings, firstSettings } from '../../../../plugins/v1/realtime/settings.js'
import { bytesOf, int16, littleEndian, samplesOf } from '../../../../plugins/v1/realtime/sound/sound-format.js'
import { TurnDetector, type TurnChange } from '../../../../plugins/v1/realtime/sound/turn-detector.js'
import { SpokenSound } from '../../../../plugins/v1/realtime/sound/wav.js'
import { pcmOf, wavHead } from '../../providers/audio/sound.js'

const RATE = 16_000

const wavOf = (samples: Int16Array, rate: number): Buffer => wavFile(littleEndian(samples), rate)

function tone (hz: number, seconds: number, rate: number, loudness = 8_000): Int16Array {
  const at = (i: number): number => Math.round(Math.sin(i * 2 * Math.PI * hz / rate) * loudness)
  return Int16Array.from({ length: Math.round(seconds * rate) }, (_, i) => at(i))
}

/** The same always. */
function noise (seconds: number, loudness: number): Int16Array {
  let seed = 1
  return Int16Array.from({ length: seconds * RATE }, () => {
    seed = seed * 1_103_515_245 + 12_345 & 0x7fffffff
    return Math.round((seed / 0x3fffffff - 1) * loudness)
  })
}

function joined (pieces: readonly Int16Array[]): Int16Array {
  return Int16Array.from(pieces.flatMap(piece => [...piece]))
}

/** The piece between two places of each cut. */
function cut<T extends Buffer | Int16Array> (whole: T, cuts: readonly number[]): T[] {
  const places = [...new Set(cuts.map(at => at % (whole.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((from, i) => whole.subarray(from, places[i] ?? whole.length) as T)
}

const rates = [[24_000, 16_000], [22_050, 24_000], [44_100, 24_000], [8_000, 16_000], [24_000, 8_000], [48_000, 24_000]] as const

t.test('sound at another rate is the same sound, and what the other rate cannot hold is gone', async t => {
  for (const [from, to] of rates) {
    const made = resampled(tone(1_000, 0.5, from), from, to)
    const expected = tone(1_000, 0.5, to)
    t.equal(made.length, expected.length, `${from} to ${to}`)
    const worst = made.subarray(100, -100).reduce((most, value, i) => Math.max(most, Math.abs(value - expected[i + 100]!)), 0)
    t.ok(worst < 100, `${from} to ${to}: ${worst} of 8000`)
  }
  const hiss = resampled(tone(10_000, 0.5, 24_000), 24_000, 16_000).subarray(200, -200)
  t.ok(hiss.every(value => Math.abs(value) < 80), 'a tone above half of the rate would come back as another one')
  t.strictSame(resampled(Int16Array.of(1, 2), RATE, RATE), Int16Array.of(1, 2))
})

t.test('how sound is cut on its way makes no difference', async () => {
  const whole = noise(0.1, 20_000)
  const cuts = fc.array(fc.nat(), { maxLength: 12 })
  await fc.assert(fc.asyncProperty(cuts, fc.constantFrom(8_000, 16_000, 22_050, 24_000), async (places, to) => {
    const resampler = new Resampler(RATE, to)
    for (let again = 0; again < 2; again++) {
      const made = cut(whole, places).map(piece => resampler.push(piece))
      assert.deepEqual(joined([...made, resampler.end()]), resampled(whole, RATE, to))
    }
  }), { numRuns: 50 })
  const file = wavOf(whole, RATE)
  const streamed = Buffer.concat([wavHead(0, RATE, false), file.subarray(44)])
  const listed = Buffer.concat([file.subarray(0, 36), Buffer.from('LIST\x05\0\0\0INFOx\0'), file.subarray(36), Buffer.from('junk')])
  await fc.assert(fc.asyncProperty(cuts, fc.constantFrom(file, streamed, listed), async (places, bytes) => {
    const sound = new SpokenSound('audio/wav')
    assert.deepEqual(joined(cut(bytes, places).map(piece => sound.push(piece))), whole)
    assert.equal(sound.rate, RATE)
  }), { numRuns: 200 })
})

t.test('raw samples have the rate that their type tells, both channels are one, and other sound is refused by its name', async t => {
  const rate = (type: string): number => {
    const sound = new SpokenSound(type)
    sound.push(Buffer.alloc(8))
    return sound.rate
  }
  t.equal(rate('audio/pcm'), 24_000)
  t.equal(rate('audio/L16; rate=22050; channels=1'), 22_050)
  t.equal(rate('application/octet-stream'), 24_000)
  t.throws(() => rate('audio/mpeg'), { code: 'realtime.not_sound', message: /audio\/mpeg/ })
  const stereo = wavOf(Int16Array.of(100, 300, -5, -7), RATE)
  stereo.writeUInt16LE(2, 22)
  t.strictSame(new SpokenSound('audio/wav').push(stereo), Int16Array.of(200, -6))
  const float = wavOf(Int16Array.of(1, 2), RATE)
  float.writeUInt16LE(3, 20)
  t.throws(() => new SpokenSound('audio/wav').push(float), { code: 'realtime.not_sound' })
  t.throws(() => new SpokenSound('audio/wav').push(Buffer.concat([Buffer.from('RIFF....WAVEfmt '), Buffer.alloc(70_000, 0x7f)])), { code: 'realtime.not_sound' })
})

t.test('telephone sound is what G.711 says', async t => {
  // of ITU-T's tables: code, sample
  const rows = { 'audio/pcmu': [[0x00, -32_124], [0x80, 32_124], [0xff, 0], [0x8f, 16_764], [0xf0, 120]], 'audio/pcma': [[0x55, -8], [0xd5, 8], [0x2a, -32_256], [0xaa, 32_256]] } as const
  for (const [format, pairs] of Object.entries(rows) as Array<[keyof typeof rows, ReadonlyArray<readonly [number, number]>]>) {
    for (const [code, sample] of pairs) {
      t.equal(samplesOf(Buffer.from([code]), format)![0], sample, `${format} ${code}`)
      t.equal(samplesOf(bytesOf(Int16Array.of(sample), format), format)![0], sample)
    }
    const voice = int16(pcmOf(0.1, 8_000))
    const back = samplesOf(bytesOf(voice, format), format)!
    t.ok(voice.every((value, i) => Math.abs(value - back[i]!) <= Math.max(16, Math.abs(value) * 0.04)), format)
  }
  t.equal(samplesOf(Buffer.alloc(3), 'audio/pcm'), null)
})

const rule = { threshold: 0.5, silenceMs: 500 }

/** Changes in milliseconds. */
function changes (pieces: readonly Int16Array[], given = rule): Array<[TurnChange['kind'], number]> {
  const detector = new TurnDetector(RATE, given)
  return pieces.flatMap(piece => detector.push(piece)).map(({ kind, at }) => [kind, at / RATE * 1000])
}

t.test('a turn begins where speech does and ends when it has been silent for long enough', async t => {
  const quiet = (seconds: number): Int16Array => noise(seconds, 20)
  const speech = (seconds: number): Int16Array => tone(180, seconds, RATE)
  t.strictSame(changes([quiet(1), speech(1), quiet(0.3), speech(0.5), quiet(1)]), [['started', 1_000], ['stopped', 3_300]], 'a short pause is none')
  t.strictSame(changes([speech(0.2), quiet(1)]), [['started', 0], ['stopped', 700]])
  t.strictSame(changes([quiet(1), speech(0.03), quiet(1)]), [], 'a click is no speech')
  const whisper = [quiet(1), tone(180, 1, RATE, 150), quiet(1)]
  t.strictSame(changes(whisper), [], 'nor is a voice in the next room')
  t.equal(changes(whisper, { ...rule, threshold: 0.2 }).length, 2, 'unless it is asked for')
  t.strictSame(changes([new Int16Array(RATE), quiet(2)]), [], 'a room that begins to be heard')
  const loud = changes([quiet(1), noise(20, 1_000), noise(10, 1_000)])
  t.equal(loud.length, 2, 'a fan that starts is speech at first, and then the room')
  t.strictSame(changes([noise(12, 300), speech(1), noise(2, 300)], rule).slice(-2).map(([kind]) => kind), ['started', 'stopped'], 'speech above noise')
})

t.test('where turns begin and end does not depend on how the sound is cut', async () => {
  const whole = joined([noise(0.4, 20), tone(180, 0.5, RATE), noise(0.7, 20), tone(180, 0.3, RATE), noise(0.6, 20)])
  const expected = changes([whole])
  assert.equal(expected.length, 4)
  await fc.assert(fc.asyncProperty(fc.array(fc.nat(), { maxLength: 30 }), async places => {
    assert.deepEqual(changes(cut(whole, places)), expected)
  }), { numRuns: 50 })
})

t.test('a text is spoken in sentences, none of which is too long, and nothing of it is lost', async t => {
  const all = (...pieces: readonly string[]): string[] => {
    const sentences = new Sentences()
    return [...pieces.flatMap(piece => sentences.push(piece)), sentences.end()]
  }
  t.strictSame(all('It is 3.5 km to Dr. Who. ', 'Yes. ', 'No, really! And you?'), ['It is 3.5 km to Dr. Who. ', 'Yes. No, really! ', 'And you?'])
  t.strictSame(all('これは最初の文です、とても。これは二番目です。'), ['これは最初の文です、とても。', 'これは二番目です。'])
  t.strictSame(all('He said "stop it now!" and left the room. Then'), ['He said "stop it now!" ', 'and left the room. ', 'Then'])
  t.ok(all(`${'word '.repeat(50)}, ${'word '.repeat(100)}`).every(sentence => sentence.length <= 241))
  t.strictSame([isSpoken('...'), isSpoken(' \n'), isSpoken('7'), isSpoken('да')], [false, false, true, true])
  const text = fc.array(fc.constantFrom('a', 'Mr.', ' ', '. ', '! ', '\n', 'word', '。', ', ', '😀', 'x'.repeat(300)), { maxLength: 60 }).map(parts => parts.join(''))
  await fc.assert(fc.asyncProperty(text, fc.array(fc.nat(), { maxLength: 8 }), async (whole, cuts) => {
    const places = [...new Set(cuts.map(at => at % (whole.length + 1)))].sort((a, b) => a - b)
    const sentences = all(...[0, ...places].map((from, i) => whole.slice(from, places[i])))
    assert.equal(sentences.join(''), whole)
    assert.ok(sentences.every(sentence => sentence.length <= 241))
    assert.deepEqual(sentences, all(whole))
  }), { numRuns: 300 })
})

t.test('an answer that was cut off keeps the words that were heard', async t => {
  const after = (ms: number): string => {
    const part = { type: 'output_audio' as const, transcript: 'x', spoken: [{ text: 'One two three. ', ms: 1_000 }, { text: 'Four five.', ms: 500 }] }
    truncate(part, ms)
    t.equal(part.spoken.reduce((sum, each) => sum + each.ms, 0), ms, 'and its sound is as long')
    t.equal(part.spoken.map(({ text }) => text).join(''), part.transcript, 'what a cancelled answer is made of later')
    return part.transcript
  }
  t.strictSame([0, 400, 1_000, 1_300, 1_500].map(after), ['', 'One ', 'One two three. ', 'One two three. Four ', 'One two three. Four five.'])
})

t.test('turns cost what their sound is, however many of them one message has', t => {
  const heard = new HeardAudio()
  heard.use(changedSettings(firstSettings('agent', 'realtime'), { audio: { input: { turn_detection: null, format: { type: 'audio/pcmu' } } } }, 'session'))
  heard.push(new Int16Array(100_000))
  let copied = 0
  const slice = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Int16Array.prototype) as object, 'slice')!.value as Int16Array['slice']
  t.intercept(Int16Array.prototype, 'slice', {
    configurable: true,
    value (this: Int16Array, ...range: [number?, number?]) {
      const made = slice.apply(this, range)
      copied += made.length
      return made
    }
  })
  const taken = Array.from({ length: 1_000 }, (_, i) => heard.take(i * 100, i * 100 + 100).length)
  t.ok(taken.every(length => length === 100))
  t.ok(copied <= 200_000, `${copied} samples were copied for 100,000`)
  t.end()
})
