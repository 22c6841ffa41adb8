import { basename } from 'node:path'
import type { Model, ModelCapability, ModelNames, SlotType } from '../contract/index.js'

/** What a model must be able to do to be loaded by a slot of a type; one of them is enough. */
const wantedBy: Readonly<Record<SlotType, readonly ModelCapability[]>> = {
  llm: ['chat', 'vision'], embedding: ['embed'], reranking: ['rerank'], transcription: ['asr'], tts: ['tts'], image: ['image']
}

/** Words in an id or file name that tell what a model is for. In order: rerankers are named after embedders. */
const tokens: readonly (readonly [ModelCapability, RegExp])[] = [
  ['rerank', /rerank/],
  ['embed', /embed/],
  ['vision', /(^|[^a-z0-9])vl([^a-z]|$)|vision|(^|[^a-z0-9])vit([^a-z]|$)/],
  ['asr', /(^|[^a-z0-9])(asr|stt)([^a-z]|$)/],
  ['tts', /(^|[^a-z0-9])tts([^a-z]|$)/],
  ['image', /(^|[^a-z0-9])txt2img([^a-z]|$)/]
]

/** What engines know of names of models, besides the words above. */
type Names = readonly ModelNames[]

type Described = Pick<Model, 'id' | 'path' | 'capabilities' | 'tags'>

/** What the registry says, else what the name suggests, else chat. Pure. */
export function capabilitiesOf (model: Omit<Described, 'tags'>, names: Names): readonly ModelCapability[] {
  if (model.capabilities.length > 0) return model.capabilities
  return capabilitiesOfName(model.id, names) ?? capabilitiesOfName(basename(model.path), names) ?? ['chat']
}

/** Null for a name that gives nothing away. Pure. */
export function capabilitiesOfName (name: string, names: Names): readonly ModelCapability[] | null {
  const text = name.toLowerCase()
  const found = tokens.find(([capability, pattern]) =>
    pattern.test(text) || names.some(({ [capability]: own }) => own?.test(text) === true))
  if (found === undefined) return null
  return found[0] === 'vision' ? ['chat', 'vision'] : [found[0]]
}

/** Whether a slot of this type can serve the model. Pure. */
export function fitsSlotType (model: Omit<Described, 'tags'>, type: SlotType, names: Names): boolean {
  const able = capabilitiesOf(model, names)
  return wantedBy[type].some(capability => able.includes(capability))
}

/** Why a slot of this type cannot serve the model, where more than a guess says what it is for; null when it can. Pure. */
export function typeMisfit (model: Omit<Described, 'tags'>, type: SlotType, names: Names): string | null {
  const isNamed = [model.id, basename(model.path)].some(name => capabilitiesOfName(name, names) !== null)
  const isKnown = model.capabilities.length > 0 || isNamed
  if (!isKnown || fitsSlotType(model, type, names)) return null
  return `'${model.id}' is a model for ${capabilitiesOf(model, names).join(' and ')}, but the slot is of type ${type}`
}

/** Multi-token prediction: tag `mtp`, or `mtp` as a word of its own in the id or file name. Pure. */
export function isMtpEligible (model: Omit<Described, 'capabilities'>): boolean {
  if (model.tags.some(tag => tag.toLowerCase() === 'mtp')) return true
  return [model.id, basename(model.path)].some(name => /(^|[^a-z0-9])mtp([^a-z0-9]|$)/i.test(name))
}
