import { z } from 'zod'
import { svcError } from 'svc-gateway/plugin'
import { isObject, type Json } from '../over-chat/ref.js'
import { realtimeError } from './errors.js'
import { soundFormats, type SoundFormat } from './sound/sound-format.js'

export interface Transcription {
  readonly model: string | null
  readonly language: string | null
  readonly prompt: string | null
}

export interface TurnDetection {
  /** As it was asked for. */
  readonly told: Json
  readonly threshold: number
  readonly prefixMs: number
  readonly silenceMs: number
  readonly createsResponse: boolean
  readonly interruptsResponse: boolean
}

/** What a client may change of its session; a response has its own for as long as it is made. */
export interface Settings {
  readonly type: 'realtime' | 'transcription'
  readonly model: string
  readonly modality: 'audio' | 'text'
  readonly instructions: string
  readonly tools: readonly Json[]
  readonly toolChoice: unknown
  readonly parallelToolCalls: boolean | null
  readonly maxOutputTokens: number | 'inf'
  readonly temperature: number | null
  readonly effort: string | null
  readonly inputFormat: SoundFormat
  /** Null: the client is not told what was heard. */
  readonly transcription: Transcription | null
  readonly turns: TurnDetection | null
  readonly outputFormat: SoundFormat
  /** What speaks; null is the gateway's choice. */
  readonly speechModel: string | null
  readonly voice: unknown
  readonly speed: number | null
}

/** How long a pause may be, by `eagerness`: what a turn means is not looked at. */
const pauses = { low: 1_200, medium: 700, auto: 700, high: 400 } as const

const switches = { create_response: z.boolean().optional(), interrupt_response: z.boolean().optional() }
const serverVad = z.strictObject({
  type: z.literal('server_vad').optional(),
  threshold: z.number().min(0).max(1).default(0.5),
  prefix_padding_ms: z.number().int().min(0).max(5_000).default(300),
  silence_duration_ms: z.number().int().min(20).max(10_000).default(500),
  idle_timeout_ms: z.null().optional(),
  ...switches
})
const semanticVad = z.strictObject({
  type: z.literal('semantic_vad'), eagerness: z.enum(['low', 'medium', 'high', 'auto']).default('auto'), ...switches
})

const formatSchema = z.strictObject({ type: z.enum(soundFormats), rate: z.number().optional() })
  .refine(({ type, rate }) => rate === undefined || rate === (type === 'audio/pcm' ? 24_000 : 8_000), {
    path: ['rate'], error: 'must be 24000 for audio/pcm and 8000 for the others'
  })
const transcriptionSchema = z.looseObject({
  model: z.string().nullish(), language: z.string().nullish(), prompt: z.string().max(10_000).nullish()
})
const voiceSchema = z.union([z.string().max(200), z.looseObject({ id: z.string().max(200) })], { error: 'must be the name of a voice' })

const toolSchema = z.looseObject({
  type: z.literal('function', { error: 'must be function: no other tools are supported' }), name: z.string().min(1)
})

const patchSchema = z.strictObject({
  type: z.enum(['realtime', 'transcription']).optional(),
  model: z.string().optional(),
  output_modalities: z.array(z.enum(['text', 'audio'])).min(1).optional(),
  instructions: z.string().optional(),
  tools: z.array(toolSchema).max(512).optional(),
  tool_choice: z.union([z.enum(['auto', 'none', 'required']), z.looseObject({ type: z.literal('function'), name: z.string() })], {
    error: 'must be auto, none, required, or a function by name'
  }).optional(),
  parallel_tool_calls: z.boolean().nullish(),
  max_output_tokens: z.union([z.number().int().min(1), z.literal('inf')], { error: 'must be a whole number above 0, or inf' }).optional(),
  temperature: z.number().min(0).max(2).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  audio: z.strictObject({
    input: z.strictObject({
      format: formatSchema.optional(),
      transcription: transcriptionSchema.nullish(),
      turn_detection: z.union([serverVad, semanticVad]).nullish(),
      noise_reduction: z.unknown()
    }).partial().optional(),
    output: z.strictObject({
      format: formatSchema.optional(),
      model: z.string().nullish(),
      voice: voiceSchema.nullish(),
      speed: z.number().min(0.25).max(4).nullish()
    }).optional()
  }).optional(),
  include: z.array(z.never({ error: 'is not supported here' })).nullish(),
  prompt: z.null({ error: 'is not supported: send `instructions`' }).optional(),
  // told back as they are without, since they have no effect here
  tracing: z.unknown(),
  truncation: z.unknown()
}).partial()
type Patch = z.output<typeof patchSchema>

/** The settings of a session that has said nothing yet. */
export function firstSettings (model: string, type: Settings['type']): Settings {
  return {
    type,
    model,
    modality: 'audio',
    instructions: '',
    tools: [],
    toolChoice: 'auto',
    parallelToolCalls: null,
    maxOutputTokens: 'inf',
    temperature: null,
    effort: null,
    inputFormat: 'audio/pcm',
    transcription: type === 'transcription' ? { model: null, language: null, prompt: null } : null,
    turns: turnsOf({ type: 'server_vad' }),
    outputFormat: 'audio/pcm',
    speechModel: null,
    voice: null,
    speed: null
  }
}

/** What a session object that a client sends back has of the gateway's own. */
const own = ['id', 'object', 'expires_at', 'client_secret']

/**
 * The settings with those that a client names, in the words of the API or of its beta.
 * @param at what the fields stand in, for refusals. Throws `validation.invalid`, `realtime.unsupported`. Pure.
 */
export function changedSettings (settings: Settings, told: unknown, at: string): Settings {
  if (!isObject(told)) throw svcError('validation.invalid', `'${at}' must be an object`, { param: at })
  const parsed = patchSchema.safeParse(fromBeta(Object.fromEntries(Object.entries(told).filter(([key]) => !own.includes(key)))))
  if (!parsed.success) throw refusal(parsed.error.issues[0]!, at)
  return patched(settings, parsed.data)
}

/** What of a session or response that an event brings may name models; null without. Pure. */
export function modelsIn ({ session, response }: Json): Json | null {
  const told = session ?? response
  if (!isObject(told)) return null
  const { model, audio, input_audio_transcription: transcription } = told
  const named = defined({ model, audio, input_audio_transcription: transcription })
  return Object.keys(named).length === 0 ? null : named
}

function patched (settings: Settings, patch: Patch): Settings {
  const { audio: { input = {}, output = {} } = {} } = patch
  const { output_modalities: modalities } = patch
  return {
    ...settings,
    type: patch.type ?? settings.type,
    model: patch.model ?? settings.model,
    modality: modalities === undefined ? settings.modality : modalities.includes('audio') ? 'audio' : 'text',
    instructions: patch.instructions ?? settings.instructions,
    tools: patch.tools ?? settings.tools,
    toolChoice: patch.tool_choice ?? settings.toolChoice,
    parallelToolCalls: pick(patch.parallel_tool_calls, settings.parallelToolCalls),
    maxOutputTokens: patch.max_output_tokens ?? settings.maxOutputTokens,
    temperature: pick(patch.temperature, settings.temperature),
    effort: patch.reasoning === undefined ? settings.effort : patch.reasoning?.effort ?? null,
    inputFormat: input.format?.type ?? settings.inputFormat,
    transcription: input.transcription === undefined ? settings.transcription : transcriptionOf(input.transcription),
    turns: input.turn_detection === undefined ? settings.turns : turnsOf(input.turn_detection),
    outputFormat: output.format?.type ?? settings.outputFormat,
    speechModel: pick(output.model, settings.speechModel),
    voice: pick(output.voice, settings.voice),
    speed: pick(output.speed, settings.speed)
  }
}

/** Null is a value. */
function pick<T> (given: T | undefined, present: T): T {
  return given === undefined ? present : given
}

function transcriptionOf (told: z.output<typeof transcriptionSchema> | null): Transcription | null {
  return told === null ? null : { model: told.model ?? null, language: told.language ?? null, prompt: told.prompt ?? null }
}

function turnsOf (told: Json | null): TurnDetection | null {
  if (told === null) return null
  const isSemantic = told.type === 'semantic_vad'
  const vad = serverVad.parse(isSemantic ? { silence_duration_ms: pauses[told.eagerness as keyof typeof pauses] } : told)
  const { create_response: creates = true, interrupt_response: interrupts = true } = told as z.output<typeof semanticVad>
  const { threshold, prefix_padding_ms: prefix, silence_duration_ms: silence } = vad
  const words = isSemantic
    ? { eagerness: told.eagerness }
    : { threshold, prefix_padding_ms: prefix, silence_duration_ms: silence, idle_timeout_ms: null }
  return {
    told: { type: isSemantic ? 'semantic_vad' : 'server_vad', ...words, create_response: creates, interrupt_response: interrupts },
    threshold,
    prefixMs: prefix,
    silenceMs: silence,
    createsResponse: creates,
    interruptsResponse: interrupts
  }
}

const betaFormats: Readonly<Record<string, SoundFormat>> = { pcm16: 'audio/pcm', g711_ulaw: 'audio/pcmu', g711_alaw: 'audio/pcma' }

/** Pure. */
function fromBeta (told: Json): Json {
  const {
    modalities, voice, speed, input_audio_format: heard, output_audio_format: spoken, input_audio_transcription: transcription,
    input_audio_noise_reduction: noise, turn_detection: turns, max_response_output_tokens: most, ...rest
  } = told
  const input = defined({ format: formatOf(heard), transcription, noise_reduction: noise, turn_detection: turns })
  const output = defined({ format: formatOf(spoken), voice, speed })
  const { audio } = rest
  const isBeta = Object.keys(input).length + Object.keys(output).length > 0
  return {
    ...rest,
    ...defined({ output_modalities: modalities, max_output_tokens: most }),
    ...isBeta ? { audio: { ...isObject(audio) ? audio : {}, ...within(audio, 'input', input), ...within(audio, 'output', output) } } : {}
  }
}

function within (audio: unknown, key: string, members: Json): Json {
  const present = isObject(audio) ? audio[key] : undefined
  return Object.keys(members).length === 0 ? {} : { [key]: { ...isObject(present) ? present : {}, ...members } }
}

function defined (members: Json): Json {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

function formatOf (word: unknown): unknown {
  if (word === undefined) return undefined
  return { type: typeof word === 'string' ? betaFormats[word] ?? word : word }
}

/** What is of the API and not here is told apart from what is wrong. */
function refusal (issue: z.core.$ZodIssue, at: string): Error {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const path = [at, ...issue.path.map(String), ...unknown === undefined ? [] : [unknown.slice(0, 64)]].join('.')
  if (unknown !== undefined) return realtimeError('realtime.unsupported', `'${path}' is not a known setting: omit it`, { param: path })
  if (/\.(prompt|idle_timeout_ms)$/.test(path)) return realtimeError('realtime.unsupported', `'${path}' is not supported here: omit it`, { param: path })
  return svcError('validation.invalid', `'${path}' ${wordsOf(issue)}`, { param: path })
}

function wordsOf ({ message, code }: z.core.$ZodIssue): string {
  return code === 'custom' || message.startsWith('must') || message.startsWith('is ') || message.startsWith('names') ? message : `is wrong: ${message}`
}
