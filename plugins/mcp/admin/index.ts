import { core, definePlugin, svcError, type ToolPassage } from 'svc-gateway/plugin'
import { AdminPrompts } from './prompts.js'
import { AdminResources } from './resources.js'

const instructions = `This server manages a local inference gateway. Models run in slots. Start with slot_list to see what serves and what fails, and with slot_status to learn why. ` +
  `Tools with large effects answer {"status": "pending_approval", "approval_id": ...}: nothing has happened yet, and an operator decides; tell the user, and continue once it is approved. ` +
  `A list that says "n more" can be narrowed as it says.`

/** `/mcp/admin`: the words, resources and prompts of the gateway's own tool server. Its tools are routes of other plugins. */
export default definePlugin({
  name: 'mcp-admin',
  kind: 'mcp',
  apiVersion: 1,
  requires: { tools: core.tools, config: core.config, slots: core.slots },
  register (ctx) {
    const { tools, config, slots } = ctx.services
    const names = (): readonly string[] => slots.names().toSorted()
    const resources = new AdminResources(tools, names)
    const prompts = new AdminPrompts(tools, names)
    const request: ToolPassage = async (method, params, caller) => {
      switch (method) {
        case 'resources/list': return resources.list()
        case 'resources/templates/list': return resources.templates()
        case 'resources/read': return await resources.read(String(params.uri), caller)
        case 'prompts/list': return prompts.list()
        case 'prompts/get': return await prompts.get(String(params.name), (params.arguments ?? {}) as Record<string, unknown>, caller)
        case 'completion/complete': return completed(params, names())
        default: throw svcError('mcp.unknown_resource', `the server has no ${method}`)
      }
    }
    let told = names().join(' ')
    tools.addServer({
      id: 'admin',
      title: 'svc admin',
      description: 'Slots, models, settings and everything else that this gateway manages',
      instructions,
      parts: { resources: true, prompts: true, completions: true },
      request,
      counts: () => ({ resources: resources.count, prompts: prompts.count }),
      onChange: listener => config.onChange(() => {
        // each slot is a resource
        const now = names().join(' ')
        if (now === told) return
        told = now
        listener()
      })
    })
  }
})

/** Arguments that take the name of a slot: of the prompts, and of the address of a slot. */
const slotArguments: readonly unknown[] = ['slot', 'name']

/** For an argument that is free text nothing is known. */
function completed ({ argument }: Readonly<Record<string, unknown>>, slots: readonly string[]): object {
  const { name, value = '' } = (argument ?? {}) as { readonly name?: unknown, readonly value?: unknown }
  const known = slotArguments.includes(name) ? slots : []
  const values = known.filter(slot => slot.startsWith(String(value))).slice(0, 100)
  return { completion: { values, total: values.length, hasMore: false } }
}
