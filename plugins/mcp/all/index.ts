import { core, definePlugin } from 'svc-gateway/plugin'
import { ALL, JointView } from './joint-view.js'
import { reachingTools } from './reaching-tools.js'

const instructions = 'These are the tools of several servers; the name of each starts with its server. If tool_search is listed, some tools are not: ' +
  'search for what you need, and call it with tool_call. ' +
  'Tools that answer {"status": "pending_approval", "approval_id": ...} have not run yet: an operator decides; tell the user, and continue once it is approved.'

/** `/mcp/all`: the tools of every tool server at one address. */
export default definePlugin({
  name: 'mcp-all',
  kind: 'mcp',
  apiVersion: 1,
  requires: { tools: core.tools, config: core.config },
  register (ctx) {
    const { tools, config } = ctx.services
    const most = (): number => config.snapshot.svc.mcp.all_tools
    let view: JointView | null = null
    const current = (): JointView => view ??= new JointView(tools, most())
    for (const tool of reachingTools(current)) ctx.addTool(tool)
    tools.addServer({
      id: ALL,
      title: 'svc all tools',
      description: 'The tools of every tool server of this gateway',
      instructions,
      view: () => {
        view = null
        return current()
      },
      onChange: listener => config.onChange((next, before) => {
        if (next.svc.mcp.all_tools !== before.svc.mcp.all_tools) listener()
      })
    })
  }
})
