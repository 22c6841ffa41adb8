import { svcError, type Clock, type ToolCaller, type ToolCatalogue, type ToolServerInfo } from 'svc-gateway/plugin'
import type { ApprovalPage } from './approval-page.js'
import type { Ask } from './ask.js'
import { callProgress } from './call-progress.js'
import { actorOf } from './identity.js'
import { listedTools } from './listed-tools.js'
import { toolAnswer } from './tool-answer.js'
import { INVALID_PARAMS, isObject, METHOD_NOT_FOUND, RpcError, type Params } from './rpc.js'

/** Methods that a server answers by itself, by the part of the protocol that it has to have. */
const passages = {
  'resources/list': 'resources',
  'resources/templates/list': 'resources',
  'resources/read': 'resources',
  'resources/subscribe': 'subscriptions',
  'resources/unsubscribe': 'subscriptions',
  'prompts/list': 'prompts',
  'prompts/get': 'prompts',
  'completion/complete': 'completions',
  'logging/setLevel': 'logging'
} as const satisfies Record<string, keyof ToolServerInfo['parts']>
export type PassageMethod = keyof typeof passages
export const passageMethods = Object.keys(passages) as readonly PassageMethod[]

export interface MethodDeps {
  readonly tools: ToolCatalogue
  readonly clock: Clock
  readonly page: ApprovalPage
}

/** What the servers answer, in both eras of the protocol. */
export class Methods {
  readonly #tools: ToolCatalogue
  readonly #clock: Clock
  readonly #page: ApprovalPage

  constructor ({ tools, clock, page }: MethodDeps) {
    this.#tools = tools
    this.#clock = clock
    this.#page = page
  }

  /** Whether the server has this method besides those of tools. */
  passes (server: ToolServerInfo, method: string): method is PassageMethod {
    return Object.hasOwn(passages, method) && server.parts[passages[method as PassageMethod]] === true
  }

  /** As JSON. */
  listed ({ server, identity }: Pick<Ask, 'server' | 'identity'>): string {
    return listedTools(this.#tools.list(server.id, identity))
  }

  /** Throws an `RpcError` where the request is wrong; a tool that fails is a result. */
  async call (ask: Ask, params: Params): Promise<object> {
    const { name, arguments: args = {}, _meta: meta } = params
    if (typeof name !== 'string') throw new RpcError(INVALID_PARAMS, '`name` of the tool is missing')
    if (!isObject(args)) throw new RpcError(INVALID_PARAMS, '`arguments` must be an object')
    const entry = this.#tools.find(ask.server.id, name)
    const token = isObject(meta) ? meta.progressToken : undefined
    const { notify } = ask
    const isAsked = notify !== null && (typeof token === 'string' || typeof token === 'number')
    const progress = isAsked && entry !== null
      ? callProgress(this.#clock, name, told => notify('notifications/progress', { progressToken: token, ...told }))
      : null
    try {
      const resumed = await this.#page.resumed(ask, name)
      const outcome = resumed ?? await this.#tools.call(ask.server.id, name, args, this.#caller(ask, progress?.tell))
      const page = resumed === null && outcome.kind === 'pending' ? this.#page.ask(ask, name, outcome.approvalId) : null
      return page ?? toolAnswer(outcome, { hasShape: entry?.outputSchema != null && !entry.gated })
    } finally {
      progress?.end()
    }
  }

  /** What the server itself answers about resources, prompts and the like. */
  async pass (ask: Ask, method: string, params: Params): Promise<object> {
    const request = ask.server.source?.request
    if (request === undefined || !this.passes(ask.server, method)) throw new RpcError(METHOD_NOT_FOUND, `the server has no ${method}`)
    this.#tools.requireListed(ask.server.id, ask.identity)
    const answer = await request(method, params, this.#caller(ask))
    if (!isObject(answer)) throw svcError('mcp.tool_unfit', `the server ${ask.server.id} answers ${method} with something that is not an object`)
    return answer
  }

  #caller ({ identity, signal, requestId, notify, wire }: Ask, progress?: ToolCaller['progress']): ToolCaller {
    return {
      actor: actorOf(identity),
      ...identity,
      signal,
      requestId,
      ...(progress === undefined ? {} : { progress }),
      wire: { clientCapabilities: {}, ...wire, notify: notify ?? (() => {}) }
    }
  }
}
