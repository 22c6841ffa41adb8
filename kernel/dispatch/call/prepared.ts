import type { ForwardOptions, NamedSlotConfig, OutgoingCall, RouteCall, Surface, SurfaceName } from '../../contract/index.js'
import type { ActiveRequest } from '../requests/active-requests.js'
import type { ReaderSink } from '../answer/answer-sink.js'
import type { BodyView } from '../body/body-view.js'
import type { VIA_HEADER } from '../requests/loop-guard.js'
import type { PRIORITY_HEADER } from '../requests/priority.js'
import { rewrittenBody } from '../body/rewritten-body.js'

/** What is sent on: a client's request, or a plugin's in the same shape. */
export interface Asked extends Pick<RouteCall<unknown, unknown, Buffer>, 'requestId' | 'body'> {
  readonly request: {
    readonly headers: {
      readonly 'content-type'?: string | undefined
      readonly [PRIORITY_HEADER]?: string | readonly string[] | undefined
      readonly [VIA_HEADER]?: string | readonly string[] | undefined
    }
    readonly raw: { readonly rawHeaders: readonly string[] }
  }
  /** Headers of the client's request that a plugin's is a part of. */
  readonly origin?: OutgoingCall['headers'] | undefined
}

/** A request on its way. */
export interface Prepared extends ActiveRequest {
  readonly surface: SurfaceName
  readonly asked: Asked
  readonly options: ForwardOptions
  /** Null for a body that is not JSON, which goes out as it is. */
  readonly view: BodyView | null
  /** Another stands before it while it is not known whether the place speaks the surface. */
  sink: ReaderSink
  /** It is answered over another surface: what ends on its own surface does not end it. */
  isElsewhere: boolean
  /** Gives up what the client waits for. Set once the request is on its way. */
  giveUp: (reason: Error) => void
  readonly settle: () => void
}

/**
 * The body as one place gets it.
 * @param slot its configuration, null for an upstream
 * @param surface of the slot's provider
 */
export function outgoingBody (
  { asked, options, view }: Prepared, modelId: string, slot: NamedSlotConfig | null, surface?: Surface
): Buffer {
  return view === null ? asked.body : rewrittenBody(view, withEdit(options, surface?.edit), modelId, slot)
}

function withEdit (options: ForwardOptions, edit: Surface['edit']): ForwardOptions {
  if (edit === undefined) return options
  return {
    ...options,
    edit: (body, slot) => {
      const [own, further] = [options.edit?.(body, slot) ?? null, edit(body, slot)]
      if (own === null || further === null) return own ?? further
      return {
        set: { ...own.set, ...further.set }, add: { ...own.add, ...further.add }, drop: [...own.drop ?? [], ...further.drop ?? []]
      }
    }
  }
}
