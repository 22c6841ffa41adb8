import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { pause, type Clock, type PluginService, type PluginTable, type ToolCatalogue, type ToolOutcome } from 'svc-gateway/plugin'
import type { Ask } from './ask.js'
import { actorOf } from './identity.js'
import { INVALID_PARAMS, isObject, RpcError } from './rpc.js'

/** Of a client that was sent to the page and comes back: less than the minute after which clients give up. */
const WAIT_MS = 45_000
const PREFIX = 'svc-approval.'
const PAGE = 'GET /api/agent/approvals/:id/page'
const KEY = 'approval_state_key'

export interface ApprovalPageDeps {
  readonly tools: ToolCatalogue
  readonly plugins: Pick<PluginService, 'standings'>
  readonly clock: Clock
  readonly table: PluginTable
}

/**
 * Clients of the newer revisions that can send their user to an address are sent to the page of a call that waits. What they
 * bring back says only which call that was, signed for the tool and the agent: whether it runs is decided on the page.
 */
export class ApprovalPage {
  readonly #deps: ApprovalPageDeps
  #key: Buffer | null = null

  constructor (deps: ApprovalPageDeps) {
    this.#deps = deps
  }

  /** What asks the client to open the page; null where it cannot, or there is none. */
  ask (ask: Ask, tool: string, approvalId: string): object | null {
    const { clientCapabilities: { elicitation } = {} } = ask.wire ?? {}
    if (ask.origin === null || !isObject(elicitation) || elicitation.url === undefined || !this.#isThere()) return null
    const message = `${tool} needs the approval of an operator of this gateway; the page shows what it would do`
    const url = `${ask.origin}/api/agent/approvals/${approvalId}/page`
    return {
      resultType: 'input_required',
      inputRequests: { approve: { method: 'elicitation/create', params: { mode: 'url', message, url } } },
      requestState: this.#mint(ask, tool, approvalId)
    }
  }

  /**
   * How the call ended that the client was sent to the page for, as far as it has; null for a call that is none. Throws an
   * `RpcError` for a state that was made up, or belongs to another call.
   */
  async resumed (ask: Ask, tool: string): Promise<ToolOutcome | null> {
    const { requestState, inputResponses = {} } = ask.wire ?? {}
    if (requestState?.startsWith(PREFIX) !== true) return null
    const id = requestState.slice(PREFIX.length, PREFIX.length + 32)
    const [given, own] = [requestState, this.#mint(ask, tool, id)].map(text => Buffer.from(text)) as [Buffer, Buffer]
    if (given.length !== own.length || !timingSafeEqual(given, own)) {
      throw new RpcError(INVALID_PARAMS, 'the requestState does not belong to this tool and this agent')
    }
    const { approve } = inputResponses
    const pending = { kind: 'pending', approvalId: id, state: 'pending' } as const
    // who does not open the page leaves the call where it waits
    if (!isObject(approve) || approve.action !== 'accept') return pending
    const { tools, clock } = this.#deps
    const enough = new AbortController()
    try {
      const signal = AbortSignal.any([ask.signal, enough.signal])
      return await Promise.race([tools.settled(id, signal), pause(clock, WAIT_MS, signal).then(() => pending)])
    } finally {
      enough.abort(new Error('enough was waited'))
    }
  }

  #isThere (): boolean {
    return this.#deps.plugins.standings().some(({ state, routes }) => state === 'active' && routes.includes(PAGE))
  }

  #mint ({ server, identity }: Ask, tool: string, id: string): string {
    const mac = createHmac('sha256', this.#ownKey()).update(JSON.stringify([id, server.id, tool, actorOf(identity)])).digest('hex')
    return `${PREFIX}${id}.${mac}`
  }

  /** Made once; calls wait longer than a gateway runs. */
  #ownKey (): Buffer {
    if (this.#key !== null) return this.#key
    const { table } = this.#deps
    const kept = table.get(KEY)
    const key = typeof kept === 'string' ? kept : randomBytes(32).toString('hex')
    if (key !== kept) table.set(KEY, key)
    return this.#key = Buffer.from(key, 'hex')
  }
}
