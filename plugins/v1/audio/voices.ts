import { svcError, type SlotService } from 'svc-gateway/plugin'
import type { Voices } from './schemas.js'

type Voice = Voices['voices'][number]

/** The voices of all speech slots that are up, or of the one that serves `model`. Starts none. */
export async function listVoices (slots: SlotService, model: string | undefined, signal: AbortSignal): Promise<Voices> {
  const names = speechSlots(slots, model)
  const answers = await Promise.all(names.map(name => slots.voices(name, signal)))
  return {
    voices: answers.flatMap(({ name, voices }) => voices.map(voice => voiceOf(voice, name)).filter(voice => voice !== null)),
    sources: Object.fromEntries(answers.map(({ name, source }) => [name, source]))
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
  throw svcError('model.not_found', `model '${model}' is no speech slot and none has it; leave \`model\` out for the voices of all`,
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
