import { svcError, type SlotService, type SlotVoices } from 'svc-gateway/plugin'
import type { Voices } from './schemas.js'

type Voice = Voices['voices'][number]

/** What speech slots told while they were up, for as long as they keep their model. */
export class KnownVoices {
  readonly #slots: SlotService
  readonly #told = new Map<string, { readonly modelId: string | null, readonly voices: readonly unknown[] }>()

  constructor (slots: SlotService) {
    this.#slots = slots
  }

  /**
   * The voices of all speech slots, or of those that serve `model`. Starts none: one that is not up has the voices it last
   * told.
   */
  async list (model: string | undefined, signal: AbortSignal): Promise<Voices> {
    const names = speechSlots(this.#slots, model)
    const answers = await Promise.all(names.map(name => this.#ask(name, signal)))
    return {
      voices: answers.flatMap(({ name, voices }) => voices.map(voice => voiceOf(voice, name)).filter(voice => voice !== null)),
      sources: Object.fromEntries(answers.map(({ name, source }) => [name, source]))
    }
  }

  async #ask (name: string, signal: AbortSignal): Promise<SlotVoices> {
    const answer = await this.#slots.voices(name, signal)
    const { modelId } = this.#slots.status(name)
    if (answer.source === 'live') {
      this.#told.set(name, { modelId, voices: answer.voices })
      return answer
    }
    const told = this.#told.get(name)
    return told === undefined || told.modelId !== modelId ? answer : { ...answer, voices: told.voices }
  }
}

function speechSlots (slots: SlotService, model: string | undefined): readonly string[] {
  const speaks = (name: string): boolean => slots.config(name).type === 'tts'
  if (model === undefined || model === '') return slots.names().filter(speaks)
  const name = model.replace(/^svc\//, '')
  if (slots.names().includes(name)) {
    if (speaks(name)) return [name]
    throw svcError('dispatch.no_route', `slot '${name}' is of type ${slots.config(name).type} and has no voices`, { param: 'model', details: { model } })
  }
  const owners = slots.names().filter(slot => speaks(slot) && slots.status(slot).modelId === model)
  if (owners.length > 0) return owners
  throw svcError('model.not_found', `model '${model}' is neither a speech slot nor served by one; omit \`model\` for the voices of all`,
    { param: 'model', details: { model } })
}

/** Engines list names, or objects with an id. Null for what is neither. */
function voiceOf (voice: unknown, slot: string): Voice | null {
  if (typeof voice === 'string') return { id: voice, name: voice, model: slot }
  if (typeof voice !== 'object' || voice === null) return null
  const { id, name, voice_id: other } = voice as { id?: unknown, name?: unknown, voice_id?: unknown }
  const known = [id, other, name].find(value => typeof value === 'string')
  if (known === undefined) return null
  return { ...voice, id: known, name: typeof name === 'string' ? name : known, model: slot }
}
