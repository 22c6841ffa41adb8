import type { AbilityInput, SlotAbilities } from 'svc-gateway/plugin'
import { writtenFlags } from './argv.js'

/** What names a projector by hand, about which nothing else is known. */
const projectorFlags = new Set(['mmproj', 'mmproj-url'])
const PROJECTOR_ENV = /^LLAMA_ARG_MMPROJ/

/**
 * What a slot of llama.cpp can do. Tools go through any chat template, so one that does not know them proves nothing; images
 * and sound need a projector, without which the server refuses them. Pure.
 *
 * @param embedded nothing but the embedded engine can run it, which takes neither images nor sound
 */
export function abilities ({ slot, model, profile, mmprojPath }: AbilityInput, embedded: boolean): SlotAbilities {
  if (slot.type !== 'llm') return {}
  return {
    json_schema: true,
    ...model?.metadata.tool_calling === true ? { tools: true } : {},
    ...embedded || (mmprojPath === null && isBlind({ slot, model, profile }))
      ? { vision: false, audio: false }
      : mmprojPath === null ? {} : { vision: true }
  }
}

/** Whether it is certain that the engine has no projector. */
function isBlind ({ slot, model, profile }: Pick<AbilityInput, 'slot' | 'model' | 'profile'>): boolean {
  if (model === null || (slot.vision && [...model.capabilities, ...model.tags].includes('vision'))) return false
  if (Object.keys(slot.server.env).some(key => PROJECTOR_ENV.test(key))) return false
  const written = writtenFlags(slot, model, profile)
  return written !== null && !written.some(({ name }) => projectorFlags.has(name))
}
