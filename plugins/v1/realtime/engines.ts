import { randomUUID } from 'node:crypto'
import {
  svcError, wavFile, type CallAnswer, type Clock, type DispatchService, type Otherwise, type PluginCall, type ProviderCatalog,
  type SlotService, type SvcError
} from 'svc-gateway/plugin'
import { speechDefaults } from '../audio/ref.js'
import { readAll, slotFor } from '../omni/ref.js'
import { ChatReader, isObject, textOr, type ChatListener, type Json } from '../over-chat/ref.js'
import { chatOverMessages } from '../over-messages/ref.js'
import { thinkingEdits } from '../text/ref.js'
import { realtimeError } from './errors.js'
import { HEARD_RATE, type MessageItem } from './items.js'
import { heardParts } from './conversation.js'
import { Resampler } from './sound/resample.js'
import type { AnswerNews } from './response.js'
import { everyNeed, type Need } from './outcome.js'
import type { Settings } from './settings.js'
import { bytesOf, littleEndian, rateOf } from './sound/sound-format.js'
import { SpokenSound } from './sound/wav.js'

const LONGEST_ANSWER_BYTES = 8 * 1024 * 1024
const LONGEST_ERROR_TEXT = 500
/** Of the sound of one text, besides a second for each character of it: no voice is as slow. */
const MOST_SECONDS = 600
/** Samples in one event. */
const MOST_SAMPLES = 24_000

export interface EngineDeps {
  readonly clock: Clock
  readonly dispatch: DispatchService
  readonly providers: Pick<ProviderCatalog, 'get'>
  readonly slots: Pick<SlotService, 'names' | 'config'>
}

/** Who asks, for the engines' logs and for who pays. */
export interface Asker {
  readonly requestId: string
  readonly origin: PluginCall['origin']
}

const needs = {
  llm: { surface: 'chat', does: 'answers', usual: null, setting: 'model' },
  transcription: { surface: 'transcription', does: 'hears', usual: 'whisper-1', setting: 'session.audio.input.transcription.model' },
  tts: { surface: 'speech', does: 'speaks', usual: 'tts-1', setting: 'session.audio.output.model' }
} as const

/** Asks the engines of a session. What they refuse is a `realtime.engine_refused`; what the gateway refuses comes as it is. */
export class Engines {
  readonly #deps: EngineDeps
  readonly #asker: Asker
  readonly #otherwise: Otherwise

  constructor (deps: EngineDeps, asker: Asker) {
    this.#deps = deps
    this.#asker = asker
    this.#otherwise = chatOverMessages(deps.dispatch, deps.clock)
  }

  /** Why nothing serves this, with the way out; null where something does, loaded or not. */
  missing (need: Need, settings: Settings): SvcError | null {
    const { surface, does, usual, setting } = needs[need]
    const name = this.#modelFor(need, settings)
    if (name !== null && this.#deps.dispatch.target(name, surface) !== null) return null
    const slot = this.#slotOf(need)
    const other = slot === null ? `create a slot of type ${need} with \`svc slot create ${usualNames[need]} --type ${need}\`` : `name slot '${slot}'`
    if (name === null || name === usual) {
      return realtimeError('realtime.no_slot', `nothing here ${does}: no slot of type ${need} is enabled; ${other}`, { param: setting, details: { type: need } })
    }
    const alias = /^[\w.:/-]{1,100}$/.test(name) ? `, or give that name to one with \`svc alias set ${name} ${slot ?? usualNames[need]}\`` : ''
    return realtimeError('realtime.no_slot', `nothing here ${does} as '${name.slice(0, 100)}', which takes a slot of type ${need}: ${other}${alias}`,
      { param: setting, details: { type: need } })
  }

  /**
   * Models of upstreams whose lists were never asked for are not known yet, nor those of lists that could not be had, which may
   * be by now. Never rejects.
   */
  async lookUp (settings: Settings, signal: AbortSignal): Promise<void> {
    if (everyNeed.every(need => this.missing(need, settings) === null)) return
    await this.#deps.dispatch.models(signal, this.#asker.origin?.['x-svc-via'], { waitsForFailed: true }).catch(() => null)
  }

  /** What is said in an item. */
  async transcribe (item: MessageItem, settings: Settings, signal: AbortSignal): Promise<string> {
    const pieces = heardParts(item).flatMap(({ samples }) => samples ?? [])
    const samples = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0))
    let at = 0
    for (const piece of pieces) {
      samples.set(piece, at)
      at += piece.length
    }
    const model = this.#modelFor('transcription', settings)!
    const boundary = `svc-${randomUUID()}`
    const { language = null, prompt = null } = settings.transcription ?? {}
    const fields = { model: this.#engineName(model), response_format: 'json', ...language === null ? {} : { language }, ...prompt === null ? {} : { prompt } }
    const answer = await this.#call({
      surface: 'transcription', path: '/audio/transcriptions', model, contentType: `multipart/form-data; boundary=${boundary}`,
      body: formOf(boundary, fields, wavFile(littleEndian(samples), HEARD_RATE))
    }, signal)
    const told = parsed(await readAll(answer, LONGEST_ANSWER_BYTES))
    if (isObject(told) && typeof told.text === 'string') return told.text.trim()
    throw realtimeError('realtime.engine_refused', 'the transcription engine answered with something that is not a transcript')
  }

  /** A chat completion, piece by piece. Throws `dispatch.upstream_failed` for one that is not complete. */
  async* chat (body: Json, signal: AbortSignal): AsyncGenerator<AnswerNews, void, undefined> {
    const answer = await this.#call({
      surface: 'chat', path: '/chat/completions', body: Buffer.from(JSON.stringify(body)), edit: thinkingEdits, otherwise: this.#otherwise
    }, signal)
    const news: AnswerNews[] = []
    const reader = new ChatReader(listener(news))
    if (answer.headers['content-type']?.startsWith('text/event-stream') !== true) {
      reader.whole((await readAll(answer, LONGEST_ANSWER_BYTES)).toString('utf8'))
      return yield* news
    }
    for await (const chunk of answer.body) {
      reader.push(chunk)
      yield* news.splice(0)
      if (reader.isDone) return
    }
    reader.end()
    yield* news
  }

  /** The sound of a text, in the output format of the settings, as it is made. */
  async* speak (text: string, settings: Settings, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    const { voice, speed, outputFormat } = settings
    const order = {
      model: this.#modelFor('tts', settings), input: text, ...voice === null ? {} : { voice }, ...speed === null ? {} : { speed }, response_format: 'wav'
    }
    const answer = await this.#call({ surface: 'speech', path: '/audio/speech', body: Buffer.from(JSON.stringify(order)), edit: speechDefaults }, signal)
    const sound = new SpokenSound(answer.headers['content-type'] ?? 'application/octet-stream')
    let resampler: Resampler | null = null
    let seconds = 0
    for await (const chunk of answer.body) {
      const samples = sound.push(chunk)
      if (samples.length > 0) {
        seconds += samples.length / sound.rate
        if (seconds > MOST_SECONDS + text.length) throw svcError('dispatch.upstream_failed', 'the speech engine does not stop sending audio')
      }
      if (samples.length === 0 && sound.isOver) break
      if (samples.length === 0) continue
      resampler ??= new Resampler(sound.rate, rateOf(outputFormat))
      const made = resampler.push(samples)
      for (let at = 0; at < made.length; at += MOST_SAMPLES) yield bytesOf(made.subarray(at, at + MOST_SAMPLES), outputFormat)
    }
    sound.end()
    if (resampler !== null) yield bytesOf(resampler.end(), outputFormat)
  }

  async #call (call: Pick<PluginCall, 'surface' | 'path' | 'body' | 'model' | 'contentType' | 'edit' | 'otherwise'>, signal: AbortSignal): Promise<CallAnswer> {
    const { requestId, origin } = this.#asker
    const answer = await this.#deps.dispatch.call({ ...call, priority: 'normal', requestId, origin, signal })
    if (answer.status >= 200 && answer.status <= 299) return answer
    const said = errorText(await readAll(answer, LONGEST_ANSWER_BYTES))
    throw realtimeError('realtime.engine_refused', `the engine refused with status ${answer.status}: ${said}`, {
      details: { upstream_status: answer.status, surface: call.surface }
    })
  }

  #modelFor (need: Need, settings: Settings): string | null {
    const named = need === 'llm' ? settings.model : need === 'tts' ? settings.speechModel : settings.transcription?.model ?? null
    return named !== null && named !== '' ? named : this.#slotOf(need) ?? needs[need].usual
  }

  #slotOf (need: Need): string | null {
    const { slots } = this.#deps
    return slotFor(slots.names().map(name => slots.config(name)).filter(({ enabled }) => enabled), need)?.name ?? null
  }

  /** How the engine knows the model: a form goes out as it is. */
  #engineName (model: string): string {
    const { dispatch, providers, slots } = this.#deps
    const target = dispatch.target(model, 'transcription')
    if (target === null) return model
    if (target.slot === null) return target.modelId
    const slot = slots.config(target.slot)
    return providers.get(slot.provider)?.modelName?.(slot, target.modelId) ?? target.modelId ?? model
  }
}

const usualNames: Readonly<Record<Need, string>> = { llm: 'agent', transcription: 'stt', tts: 'tts' }

function listener (news: AnswerNews[]): ChatListener {
  return {
    begin: () => {},
    text: text => news.push({ kind: 'text', text }),
    // thoughts are not spoken
    reasoning: () => {},
    call: (index, id, name, args) => news.push({ kind: 'call', index, id, name, args }),
    logprobs: () => {},
    end: ({ reason, usage }) => news.push({ kind: 'end', end: { reason, usage } })
  }
}

function formOf (boundary: string, fields: Readonly<Record<string, string>>, wav: Buffer): Buffer {
  const head = (name: string, more: string): string => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n`
  const text = Object.entries(fields).map(([name, value]) => `${head(name, '')}${value}\r\n`).join('')
  return Buffer.concat([
    Buffer.from(`${text}${head('file', '; filename="speech.wav"\r\nContent-Type: audio/wav')}`), wav, Buffer.from(`\r\n--${boundary}--\r\n`)
  ])
}

function errorText (bytes: Buffer): string {
  const told = parsed(bytes)
  const error = isObject(told) ? told.error ?? told.detail ?? told.message : null
  const message = isObject(error) ? error.message : error
  return textOr(message, bytes.toString('utf8')).slice(0, LONGEST_ERROR_TEXT)
}

function parsed (bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8')) as unknown
  } catch {
    return null
  }
}

/** What an unforeseen failure is told as. */
export function internalError (requestId: string): SvcError {
  return svcError('system.internal', `internal error; see the log, request id ${requestId}`)
}
