import { canonicalJson, type NamedToolServer } from 'svc-gateway/plugin'
import { keyOf, type Learned } from './learned.js'
import type { OfferedTool, ServerStatus } from './ref.js'
import { offered } from './tool-list.js'

export interface OfferDeps {
  /** Tools, resources or prompts are others than before. */
  readonly onChange: () => void
  /** What was learned of a server in an earlier run; the key changes with what is run. */
  readonly recall: (id: string, key: string) => Learned | null
  readonly remember: (id: string, key: string, learned: Learned) => void
}

/** What a server offers, as it was learned of it in this run or an earlier one. */
export class Offer {
  readonly #deps: OfferDeps
  #learned: Learned | null

  constructor (server: NamedToolServer, deps: OfferDeps) {
    this.#deps = deps
    this.#learned = deps.recall(server.id, keyOf(server))
  }

  get isKnown (): boolean { return this.#learned !== null }

  get instructions (): string | null { return this.#learned?.instructions ?? null }

  get parts (): { readonly resources: boolean, readonly prompts: boolean } {
    return { resources: this.#learned?.hasResources ?? false, prompts: this.#learned?.hasPrompts ?? false }
  }

  tools (server: NamedToolServer): readonly OfferedTool[] {
    return server.enabled && this.#learned !== null ? offered(this.#learned.list.tools, server.tools) : []
  }

  status (server: NamedToolServer): Pick<ServerStatus, 'version' | 'tools' | 'dropped' | 'resources' | 'prompts'> {
    const { list = null, resources = 0, prompts = 0, version = null } = this.#learned ?? {}
    return { version, tools: list === null ? null : this.tools(server), dropped: list?.dropped ?? [], resources, prompts }
  }

  /** Another server is run under the name. */
  replace (server: NamedToolServer): void {
    this.#learned = this.#deps.recall(server.id, keyOf(server))
  }

  take (server: NamedToolServer, learned: Learned): void {
    if (this.#learned !== null && canonicalJson(this.#learned) === canonicalJson(learned)) return
    this.#learned = learned
    this.#deps.remember(server.id, keyOf(server), learned)
    this.#deps.onChange()
  }
}
