import { svcError, type ToolCaller, type ToolCatalogue } from 'svc-gateway/plugin'

const JSON_TYPE = 'application/json'
const SLOT = 'svc://slots/'

/** Resources by address, each with the tool that reads it: who may not call the tool may not read the resource. */
const fixed: ReadonlyMap<string, { readonly tool: string, readonly name: string, readonly description: string }> = new Map([
  ['svc://status', { tool: 'version_info', name: 'Status', description: 'Version and state of the gateway' }],
  ['svc://activity', { tool: 'activity_list', name: 'Recent activity', description: 'Recent actions, with actor and outcome' }]
])

export class AdminResources {
  readonly #tools: ToolCatalogue
  readonly #slots: () => readonly string[]

  constructor (tools: ToolCatalogue, slots: () => readonly string[]) {
    this.#tools = tools
    this.#slots = slots
  }

  get count (): number {
    return fixed.size + this.#slots().length
  }

  list (): object {
    return {
      resources: [
        ...[...fixed].map(([uri, { name, description }]) => ({ uri, name, description, mimeType: JSON_TYPE })),
        ...this.#slots().map(slot => ({ uri: SLOT + slot, name: `Slot ${slot}`, description: `State of slot ${slot}`, mimeType: JSON_TYPE }))
      ]
    }
  }

  templates (): object {
    const slot = { uriTemplate: `${SLOT}{name}`, name: 'Slot', description: 'State of a slot, with the reason when it fails', mimeType: JSON_TYPE }
    return { resourceTemplates: [slot] }
  }

  /** Throws `mcp.unknown_resource`, and what the tool behind it is refused with. */
  async read (uri: string, caller: ToolCaller): Promise<object> {
    return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(await this.value(uri, caller)) }] }
  }

  async value (uri: string, caller: ToolCaller): Promise<unknown> {
    const slot = uri.startsWith(SLOT) ? uri.slice(SLOT.length) : null
    const tool = slot === null ? fixed.get(uri)?.tool : 'slot_status'
    if (tool === undefined || (slot !== null && !this.#slots().includes(slot))) {
      throw svcError('mcp.unknown_resource', `there is no resource ${uri}`, { details: { uri } })
    }
    const outcome = await this.#tools.call('admin', tool, slot === null ? {} : { name: slot }, caller)
    if (outcome.kind === 'failed') throw outcome.error
    if (outcome.kind === 'done') return outcome.value
    throw svcError('mcp.tool_not_allowed', `${uri} is available through ${tool}, which needs an approval: call that tool`)
  }
}
