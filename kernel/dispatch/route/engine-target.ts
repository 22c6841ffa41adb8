import { svcError, type SvcError } from '../../contract/index.js'
import type { Route } from './resolve.js'

/** The engine that an address below `/upstream` means. */
export interface EngineTarget {
  readonly slot: string
  /** As the client named it: a slot, a model, an alias. */
  readonly name: string
  /** Path and query on the engine; empty where the address ends with the name, without a slash. */
  readonly path: string
}

/** Segments that a name may have: model ids contain slashes. */
const LONGEST_NAME = 8

/**
 * Finds the engine that `<slot or model>/<path>` means; the shortest name that leads to a slot counts. Pure.
 * @param target what follows `/upstream/`, as it stands in the request line, query included
 * @param resolve where requests for a name go
 */
export function engineTarget (target: string, resolve: (name: string) => Route | null): EngineTarget | SvcError {
  const query = target.includes('?') ? target.slice(target.indexOf('?')) : ''
  const segments = target.slice(0, target.length - query.length).split('/')
  let remote: string | null = null
  for (let taken = 1; taken <= Math.min(segments.length, LONGEST_NAME); taken++) {
    const name = decoded(segments.slice(0, taken).join('/'))
    const route = name === '' ? null : resolve(name)
    if (route?.kind === 'slot') {
      const rest = segments.slice(taken)
      return { slot: route.slot, name, path: rest.length === 0 ? '' : `/${rest.join('/')}${query}` }
    }
    if (route?.kind === 'upstream') remote ??= name
  }
  const first = decoded(segments[0]!).slice(0, 200)
  if (remote !== null) {
    return svcError('dispatch.no_route', `'${remote.slice(0, 200)}' is a model of a remote upstream, and /upstream/ reaches only engines of slots; request it on /v1`,
      { param: 'model', details: { model: remote.slice(0, 200) } })
  }
  return svcError('model.not_found', `'${first}' is neither a slot nor a model of one; the address is /upstream/<slot or model>/<path of the engine>`,
    { param: 'model', details: { model: first } })
}

function decoded (text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
