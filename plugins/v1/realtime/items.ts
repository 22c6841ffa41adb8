import { svcError } from 'svc-gateway/plugin'
import { isObject, malformed, objectsIn, stringIn, textOr, typeName, type Json } from '../over-chat/ref.js'
import { realtimeError } from './errors.js'
import { resampled } from './sound/resample.js'
import { bytesOf, rateOf, samplesOf, type SoundFormat } from './sound/sound-format.js'

/** At this rate what users say is kept: engines that hear ask for no other. */
export const HEARD_RATE = 16_000

export interface TextPart {
  readonly type: 'input_text' | 'output_text'
  text: string
}

export interface HeardPart {
  readonly type: 'input_audio'
  /** At `HEARD_RATE`; null once it is not kept any more. */
  samples: Int16Array | null
  /** Null until it is known, and where it could not be made. */
  transcript: string | null
  /** No engine has listened to it yet. */
  isUnheard: boolean
}

/** A sentence, and how long its sound is as far as it was made. */
export interface Spoken {
  /** As far as it was heard. */
  text: string
  ms: number
}

export interface SpokenPart {
  readonly type: 'output_audio'
  transcript: string
  readonly spoken: Spoken[]
}

export interface ImagePart {
  readonly type: 'input_image'
  readonly url: string
  readonly detail: string | null
}

export type Part = TextPart | HeardPart | SpokenPart | ImagePart

interface ItemHead {
  readonly id: string
  status: 'completed' | 'incomplete' | 'in_progress'
}

export interface MessageItem extends ItemHead {
  readonly type: 'message'
  readonly role: 'user' | 'assistant' | 'system'
  readonly parts: Part[]
}

export interface CallItem extends ItemHead {
  readonly type: 'function_call'
  readonly callId: string
  name: string
  args: string
}

export interface OutputItem extends ItemHead {
  readonly type: 'function_call_output'
  readonly callId: string
  readonly output: string
}

export type Item = MessageItem | CallItem | OutputItem

export interface ItemReading {
  readonly at: string
  readonly format: SoundFormat
  readonly newId: (prefix: string) => string
}

const ID = /^[\w.:-]{1,128}$/

/** An item as a client sends it. Throws `validation.invalid`, `realtime.unsupported`. */
export function readItem (told: unknown, reading: ItemReading): Item {
  const { at, newId } = reading
  if (!isObject(told)) throw malformed(at, 'must be an object')
  if (told.id != null && !ID.test(stringIn(told.id, `${at}.id`))) throw malformed(`${at}.id`, 'must be at most 128 letters, digits and . : _ -')
  const head = { id: textOr(told.id, '') || newId('item'), status: told.status === 'incomplete' ? 'incomplete' as const : 'completed' as const }
  switch (told.type) {
    case 'message': return { ...head, type: 'message', ...readMessage(told, reading) }
    case 'function_call': return {
      ...head, type: 'function_call', callId: textOr(told.call_id, '') || newId('call'), name: stringIn(told.name, `${at}.name`),
      args: stringIn(told.arguments, `${at}.arguments`)
    }
    case 'function_call_output':
      return { ...head, type: 'function_call_output', callId: stringIn(told.call_id, `${at}.call_id`), output: stringIn(told.output, `${at}.output`) }
    default:
      throw realtimeError('realtime.unsupported', `'${at}.type' ${typeName(told.type)} is not one of message, function_call and function_call_output`, { param: `${at}.type` })
  }
}

function readMessage (told: Json, reading: ItemReading): Pick<MessageItem, 'role' | 'parts'> {
  const { at } = reading
  const { role } = told
  if (role !== 'user' && role !== 'assistant' && role !== 'system') throw malformed(`${at}.role`, 'must be user, assistant or system')
  const parts = objectsIn(told.content, `${at}.content`).map((part, i) => readPart(part, role, { ...reading, at: `${at}.content.${i}` }))
  return { role, parts }
}

function readPart (part: Json, role: MessageItem['role'], { at, format }: ItemReading): Part {
  const kind = `${role} ${textOr(part.type, '')}`
  if (kind === 'user input_text' || kind === 'system input_text') return { type: 'input_text', text: stringIn(part.text, `${at}.text`) }
  if (kind === 'assistant output_text' || kind === 'assistant text') return { type: 'output_text', text: stringIn(part.text, `${at}.text`) }
  if (kind === 'assistant output_audio' || kind === 'assistant audio') {
    // what it sounded like is nothing to the model
    return { type: 'output_text', text: stringIn(part.transcript, `${at}.transcript`) }
  }
  if (kind === 'user input_audio') {
    const samples = heardSamples(stringIn(part.audio, `${at}.audio`), format, `${at}.audio`)
    return { type: 'input_audio', samples: samples.length === 0 ? samples : resampled(samples, rateOf(format), HEARD_RATE), transcript: null, isUnheard: true }
  }
  if (kind === 'user input_image') {
    return { type: 'input_image', url: stringIn(part.image_url, `${at}.image_url`), detail: typeof part.detail === 'string' ? part.detail : null }
  }
  throw realtimeError('realtime.unsupported', `'${at}.type' ${typeName(part.type)} is not supported in a message of role ${role}`, { param: `${at}.type` })
}

/** Sound in Base64. Throws `validation.invalid`. */
export function heardSamples (audio: string, format: SoundFormat, at: string): Int16Array {
  const wrong = (problem: string): Error => svcError('validation.invalid', `'${at}' ${problem}`, { param: at })
  const bytes = Buffer.from(audio, 'base64')
  // what is no Base64 is left out of it
  const padding = audio.endsWith('==') ? 2 : audio.endsWith('=') ? 1 : 0
  if (bytes.length !== Math.floor((audio.length - padding) * 3 / 4)) throw wrong('must be Base64 audio')
  const samples = samplesOf(bytes, format)
  if (samples === null) throw wrong('must be whole 16-bit samples, little-endian, mono, 24000 Hz')
  return samples
}

/**
 * An item as the API words it.
 * @param sound the format in which the sound of it is told; null leaves it out. Pure.
 */
export function itemWords (item: Item, sound: SoundFormat | null = null): Json {
  const head = { id: item.id, object: 'realtime.item', type: item.type, status: item.status }
  if (item.type === 'function_call') return { ...head, call_id: item.callId, name: item.name, arguments: item.args }
  if (item.type === 'function_call_output') return { ...head, call_id: item.callId, output: item.output }
  return { ...head, role: item.role, content: item.parts.map(part => partWords(part, sound)) }
}

function partWords (part: Part, sound: SoundFormat | null): Json {
  switch (part.type) {
    case 'input_audio': {
      const { samples, transcript } = part
      if (sound === null || samples === null) return { type: part.type, transcript }
      const audio = bytesOf(resampled(samples, HEARD_RATE, rateOf(sound)), sound)
      return { type: part.type, transcript, audio: audio.toString('base64') }
    }
    case 'output_audio': return { type: part.type, transcript: part.transcript }
    case 'input_image': return { type: part.type, image_url: part.url, ...part.detail === null ? {} : { detail: part.detail } }
    default: return { type: part.type, text: part.text }
  }
}

/** What a part takes besides its characters. */
const PART_WEIGHT = 64

/** Characters of it, whatever they say. Pure. */
export function weightOf (item: Item): number {
  if (item.type === 'function_call') return item.callId.length + item.name.length + item.args.length
  if (item.type === 'function_call_output') return item.callId.length + item.output.length
  return item.parts.reduce((sum, part) => sum + PART_WEIGHT + charactersIn(part), 0)
}

function charactersIn (part: Part): number {
  return part.type === 'input_image' ? part.url.length + (part.detail?.length ?? 0) : saidIn(part).length
}

/** Pure. */
export function saidIn (part: Part): string {
  if (part.type === 'input_image') return ''
  return part.type === 'input_audio' || part.type === 'output_audio' ? part.transcript ?? '' : part.text
}
