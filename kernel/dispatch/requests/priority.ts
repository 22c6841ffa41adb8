import type { RequestPriority, SurfaceName } from '../../contract/index.js'

export const PRIORITY_HEADER = 'x-svc-priority'

/** Where people watch the answer come; what is asked there without a stream is asked by programs. */
const watched: ReadonlySet<SurfaceName> = new Set(['chat', 'completions', 'messages', 'responses'])

/**
 * The class of a request in its slot's waiting line: what the client says, else low for text that is not streamed,
 * such as titles and tags that a page asks for beside the user's own message. Pure.
 */
export function priorityOf (
  asked: string | readonly string[] | undefined, surface: SurfaceName, streams: boolean
): RequestPriority {
  if (asked === 'low' || asked === 'normal') return asked
  return watched.has(surface) && !streams ? 'low' : 'normal'
}
