import { APIUserAbortError, BadRequestError, toFile } from 'openai'
import type { Test } from 'tap'
import { decodePng, encodePng } from '../plugins/providers/imagegen/fake/png.js'
import { emptyGgml } from '../plugins/providers/stt-engine/empty-ggml.js'
import { spokenSeconds, wavOf, wavSeconds } from '../plugins/providers/audio/sound.js'
import { VOICES } from '../plugins/providers/tts-cpu/fake-kokoro.js'
import { openai } from './text-surfaces.js'

const SPEECH = wavOf(3.5, 16_000)
/** One colour, its upper half transparent. */
const HALF = { width: 64, height: 64, rgb: Buffer.alloc(64 * 64 * 3, 200), alpha: Buffer.alloc(64 * 64, 0).fill(255, 64 * 32) }
const TEXT = 'One sentence is here. Another one comes after it.'

/** Slots for sound and images: `tts`, `stt` and `img`. */
export function mediaHome (home: string, [tts, stt, img]: readonly number[]): Record<string, string | Buffer> {
  const store = `${home}/var/lib/svc/models`
  return {
    'var/lib/svc/models/ears.bin': emptyGgml(),
    'var/lib/svc/comfyui/models/checkpoints/sd_xl_turbo_1.0_fp16.safetensors': '',
    'etc/svc/slots/tts.toml': `type = "tts"\nprovider = "tts-cpu"\ndevice = "cpu"\nport = ${tts!}\n`,
    'etc/svc/slots/stt.toml': `type = "transcription"\nprovider = "stt-engine"\ndevice = "cpu"\nport = ${stt!}\n` +
      // so that hearing nothing takes a fraction of a second
      '[server]\nextra_args = "--no-fallback --audio-ctx 32 --threads 1"\n' +
      '[model]\ndefault = "ears"\n[options]\nengine = "whisper-cpp"\nconvert = false\n',
    'etc/svc/slots/img.toml': `type = "image"\nprovider = "imagegen"\ndevice = "cpu"\nport = ${img!}\n`,
    'var/lib/svc/registry/registry.toml': `[models.ears]\npath = "${store}/ears.bin"\n`
  }
}

/** Whole, streamed, refused, and left. */
export async function speaks (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const order = { model: 'tts', input: TEXT, voice: 'af_heart', response_format: 'wav' as const }
  const whole = await client.audio.speech.create({ ...order, ...{ stream: false } })
  t.equal(whole.headers.get('content-type'), 'audio/wav')
  t.ok(Math.abs(wavSeconds(Buffer.from(await whole.arrayBuffer()))! - spokenSeconds(TEXT, 1)) < 0.01)
  const streamed = Buffer.from(await (await client.audio.speech.create({ ...order, model: 'svc/tts', speed: 2 })).arrayBuffer())
  t.ok(Math.abs(wavSeconds(streamed)! - spokenSeconds(TEXT, 2)) < 0.2)
  const failure = (work: Promise<unknown>): Promise<unknown> => work.then(() => null, (error: unknown) => error)
  t.ok(await failure(client.audio.speech.create({ ...order, voice: 'nobody' })) instanceof BadRequestError)
  const controller = new AbortController()
  controller.abort()
  t.ok(await failure(client.audio.speech.create(order, { signal: controller.signal })) instanceof APIUserAbortError)
}

/** Of slots that are up. */
export async function listsAudioModels (t: Test, url: string): Promise<void> {
  const { data, models } = await openai(url).get<{ data: object[], models: object[] }>('/audio/models')
  t.ok(data.length > 0)
  for (const row of data) t.match(row, { object: 'model', id: String, type: /^(tts|transcription)$/, status: String })
  t.same(models, data)
}

export async function listsVoices (t: Test, url: string): Promise<void> {
  await openai(url).audio.speech.create({ model: 'tts', input: 'x', voice: 'af_heart' })
  const { voices, sources } = await openai(url).get<{ voices: Array<{ id: string }>, sources: object }>('/audio/voices')
  t.strictSame([voices.map(({ id }) => id), sources], [VOICES, { tts: 'live' }])
}

/** The test's model has no weights: it hears nothing, and tells how long the file is. */
export async function hears (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const file = await toFile(SPEECH, 'speech.wav')
  t.equal((await client.audio.transcriptions.create({ file, model: 'stt' })).text.trim(), '')
  const verbose = await client.audio.transcriptions.create({ file, model: 'svc/stt', response_format: 'verbose_json' })
  t.match(verbose, { task: 'transcribe' })
  t.ok(Math.abs(Number(verbose.duration) - 3.5) < 0.01, 'the file has arrived whole')
  for (const form of ['text', 'srt', 'vtt'] as const) {
    const subtitles = await client.audio.transcriptions.create({ file, model: 'stt', response_format: form })
    t.match(subtitles, String, form)
  }
  const noise = await toFile(Buffer.from('this is no audio'), 'speech.mp3')
  t.ok(await client.audio.transcriptions.create({ file: noise, model: 'stt' }).catch((error: unknown) => error) instanceof BadRequestError)
}

/** The engine says what it was asked to do. */
export async function translates (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const file = await toFile(SPEECH, 'speech.wav')
  const verbose = await client.audio.translations.create({ file, model: 'svc/stt', response_format: 'verbose_json' })
  const { task, duration } = verbose as unknown as { task: string, duration: string | number }
  t.equal(task, 'translate')
  t.ok(Math.abs(Number(duration) - 3.5) < 0.01, 'the file has arrived whole')
}

/** A picture behind a mask, whole, and another one like it. */
export async function repaints (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const image = await toFile(encodePng(HALF), 'half.png', { type: 'image/png' })
  const order = { image, model: 'sdxl-turbo', response_format: 'b64_json' as const }
  const masked = await client.images.edit({ ...order, prompt: 'a hat', mask: image, n: 2 })
  t.equal(masked.data!.length, 2)
  for (const { b64_json: made } of masked.data!) {
    const { width, height, rgb } = decodePng(Buffer.from(made!, 'base64'))
    t.strictSame([width, height], [64, 64])
    t.strictSame([...rgb.subarray(-3)], [200, 200, 200], 'what the mask covers stays')
  }
  const like = await client.images.createVariation(order)
  t.equal(decodePng(Buffer.from(like.data![0]!.b64_json!, 'base64')).width, 64)
  t.ok(await client.images.edit({ ...order, prompt: 'x', image: await toFile(Buffer.from('GIF89a'), 'a.gif') }).catch((error: unknown) => error) instanceof BadRequestError)
}

/** Base64, and a URL that leads to the image. */
export async function paints (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const order = { model: 'sdxl-turbo', prompt: 'a red apple', size: '256x256' as const }
  const { data } = await client.images.generate({ ...order, n: 2, response_format: 'b64_json' })
  for (const { b64_json: image } of data!) {
    const { width, height } = decodePng(Buffer.from(image!, 'base64'))
    t.strictSame([width, height], [256, 256])
  }
  t.equal(data!.length, 2)
  const linked = await client.images.generate(order)
  const image = await fetch(`${url}${linked.data![0]!.url!}`)
  t.equal(decodePng(Buffer.from(await image.arrayBuffer())).width, 256)
  t.ok(await client.images.generate({ ...order, size: 'banana' as '256x256' }).catch((error: unknown) => error) instanceof BadRequestError)
}
