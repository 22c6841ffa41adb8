import { basename, extname } from 'node:path'
import type { Model, NamedSlotConfig, SlotPlace } from 'svc-gateway/plugin'
import { optionsOf, type Flavour } from './options.js'

/** Weights of other libraries, which share the ending of whisper.cpp's files. */
const otherWeights = /^(?:model|pytorch_model.*)\.bin$/

/** A model of the hub, as speaches fetches it: `owner/name`. Pure. */
export function isHubId (id: string): boolean {
  return /^[\w.-]+\/[\w.-]+$/.test(id)
}

/** Which of the two a slot runs: the model decides unless an option says it. Pure. */
export function engineOf (slot: Pick<NamedSlotConfig, 'options'>, model: Pick<Model, 'path'> | null): Flavour {
  return optionsOf(slot).engine ?? (model !== null && isGgml(model.path) ? 'whisper-cpp' : 'speaches')
}

/** The model that speaches is asked for. Pure. */
export function hubModelOf (slot: Pick<NamedSlotConfig, 'options'>, modelId: string | null): string {
  return modelId !== null && isHubId(modelId) ? modelId : optionsOf(slot).model
}

/** Why the slot's engine cannot serve its model there, in words; null when it can. Pure. */
export function choiceProblem (slot: Pick<NamedSlotConfig, 'name' | 'options' | 'model'>, { device, model }: SlotPlace): string | null {
  const engine = engineOf(slot, model)
  const id = model?.id ?? slot.model.default
  if (engine === 'whisper-cpp') {
    return model === null && id !== null && isHubId(id)
      ? `slot '${slot.name}' runs whisper.cpp, which loads a GGML file, and '${id}' is a model of the hub: remove \`engine\` from [options]`
      : null
  }
  if (model !== null && isGgml(model.path)) {
    return `slot '${slot.name}' runs speaches, which cannot load the GGML file of '${model.id}': remove \`engine\` from [options]`
  }
  if (model !== null && !isHubId(model.id)) {
    return `'${model.id}' is neither a GGML file (ggml-*.bin) nor a model of the hub (owner/name), which is what speech to text can load`
  }
  return device === 'gpu-vulkan'
    ? `slot '${slot.name}' runs speaches, which does not support Vulkan: give it a GGML model such as Whisper-Base, or another device`
    : null
}

function isGgml (path: string): boolean {
  const ending = extname(path).toLowerCase()
  return (ending === '.bin' || ending === '.gguf') && !otherWeights.test(basename(path).toLowerCase())
}
