import type { SlotType, SurfaceName } from '../../contract/index.js'
import type { RouteSnapshot, SlotRoute } from './route-snapshot.js'

/** Names that clients of the audio API send unless they are told another. */
const usual: Partial<Record<SurfaceName, readonly [type: SlotType, names: RegExp]>> = {
  speech: ['tts', /^(tts-1(-hd)?(-1106)?|gpt-4o-mini-tts(-\d{4}-\d{2}-\d{2})?)$/],
  transcription: ['transcription', /^(whisper-1|gpt-4o(-mini)?-transcribe(-diarize)?(-\d{4}-\d{2}-\d{2})?)$/],
  translation: ['transcription', /^whisper-1$/]
}

/** The slot that such a name means: the only one that is switched on and does the work; null when there are several. Pure. */
export function onlySlotFor ({ slots }: RouteSnapshot, name: string, surface: SurfaceName): SlotRoute | null {
  const [type, names] = usual[surface] ?? []
  if (names?.test(name) !== true) return null
  const [only, ...others] = [...slots.values()].filter(slot => slot.enabled && slot.type === type && slot.surfaces.has(surface))
  return only !== undefined && others.length === 0 ? only : null
}
