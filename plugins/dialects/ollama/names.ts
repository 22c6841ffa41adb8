import type { DispatchService, SurfaceName } from 'svc-gateway/plugin'

const LATEST = ':latest'
/** Where Ollama finds models of the hub. */
const HUB = /^(?:https?:\/\/)?(?:hf\.co|huggingface\.co)\//i

/**
 * What a name as Ollama's clients write it may be called here, best first: itself, without the tag that says nothing, and
 * with the tag as the last word of the id (`qwen3:4b` is `qwen3-4b` in the catalogue). Pure.
 */
export function spellingsOf (name: string): readonly string[] {
  const plain = name.replace(HUB, '')
  const untagged = plain.endsWith(LATEST) ? plain.slice(0, -LATEST.length) : plain
  return [...new Set([name, plain, untagged, untagged.replace(':', '-')])].filter(spelling => spelling !== '')
}

/** As Ollama lists it: every name has a tag. Pure. */
export function taggedName (id: string): string {
  return id.slice(id.lastIndexOf('/') + 1).includes(':') ? id : `${id}${LATEST}`
}

/** The name under which the gateway knows a model; one that nothing has comes back without the tag that says nothing. */
export function nameHere (dispatch: Pick<DispatchService, 'target'>, name: string, surfaces: readonly SurfaceName[]): string {
  const asked = name.trim()
  const isKnown = (spelling: string): boolean => surfaces.some(surface => dispatch.target(spelling, surface) !== null)
  if (asked !== '' && isKnown(asked)) return asked
  const spellings = spellingsOf(asked)
  const known = spellings.find(isKnown)
  return known ?? spellings.find(spelling => !spelling.endsWith(LATEST)) ?? name
}
