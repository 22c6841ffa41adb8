import type { IncomingHttpHeaders } from 'node:http'
import { messageOf, svcError, type ForwardOptions } from 'svc-gateway/plugin'
import { isObject, malformed, type Json } from '../../over-chat/ref.js'
import type { AnsweringDeps } from '../answering.js'
import type { Standing } from '../chat-request.js'
import { withSummaries } from '../compaction.js'
import { continued } from '../kept/continued.js'
import { Keeper } from '../kept/keeper.js'
import type { KeptResponses } from '../kept/kept-responses.js'
import { isPrivate } from '../kept/may-keep.js'
import { groundOf, standsAlone } from './ground.js'
import type { OwnResponses } from './made-responses.js'
import { TurnTap } from './turn-tap.js'

export interface TurnDeps extends AnsweringDeps {
  /** How a request that stands so goes out. */
  readonly options: (standing: Standing) => ForwardOptions
  /** What the connection has made. */
  readonly own: OwnResponses
  readonly requestId: string
  /** Of the request that opened the connection. */
  readonly headers: IncomingHttpHeaders
}

/** A request of a connection, with all that it stands on. */
export interface PreparedTurn {
  readonly body: Buffer
  readonly standing: Standing
  readonly tap: TurnTap
  /** Lets the connection go on from the response that was made, where it is kept nowhere else. */
  readonly remember: (response: Json) => void
}

/** Rejects with what a POST of it would be refused with. @param asked the body of a POST */
export async function preparedTurn (asked: Json, deps: TurnDeps): Promise<PreparedTurn> {
  const { clock, config, dispatch, own: made, headers } = deps
  const summed = withSummaries(asked.input)
  const whole = summed === null ? asked : { ...asked, input: summed }
  const store = await storeFor(whole, deps)
  const ground = groundOf(made, store)
  const target = typeof asked.model === 'string' ? dispatch.target(asked.model.trim(), 'responses') : null
  const mostBytes = config.snapshot.svc.server.v1_body_limit_bytes
  const { body: longer, own, context } = continued(whole, ground, target, mostBytes)
  const body = longer ?? Buffer.from(JSON.stringify(whole))
  if (body.length > mostBytes) throw svcError('request.too_large', `the request has ${body.length} bytes, and ${mostBytes} are allowed`)
  const mayKeep = store !== null && !isPrivate(headers)
  if (!mayKeep && own.conversation !== null) throw malformed('conversation', 'is not available to private requests: send the conversation as input')
  // a kept response cannot build on one that is not kept
  const isAlone = own.previous !== null && made.get(own.previous) !== undefined
  const part = isAlone ? { ...own, previous: null, input: [...context, ...own.input] } : own
  const keeps = mayKeep && (own.isKept || own.conversation !== null)
  const tap = new TurnTap(keeps ? new Keeper(store, () => clock.now(), own.conversation !== null, () => part) : null)
  const standing = { keeps: mayKeep && own.isKept, previous: own.previous, conversation: own.conversation }
  return {
    body,
    standing,
    tap,
    remember: ({ id, output }) => {
      // an upstream keeps what it made, unless it was told not to
      const isElsewhere = tap.hasKept || own.conversation !== null || (tap.upstream !== null && own.isKept)
      if (isElsewhere || typeof id !== 'string') return
      const said = Array.isArray(output) ? output.filter(isObject) : []
      const isThinkers = own.previous === null || ground.thinker?.(own.previous) === tap.upstream
      made.add(id, {
        items: [...context, ...own.input, ...said],
        bytes: body.length + Buffer.byteLength(JSON.stringify(said)),
        thinker: isThinkers ? tap.upstream : null
      })
    }
  }
}

/** The kept responses; null where nothing is kept, and where they cannot be used and the request does without. */
async function storeFor (asked: Json, { file, log, own }: TurnDeps): Promise<KeptResponses | null> {
  if (file === null) return null
  try {
    return file.opened ?? await file.open()
  } catch (error) {
    if (!standsAlone(asked, own)) throw error
    log.error({ error: messageOf(error) }, 'a response is not kept')
    return null
  }
}
