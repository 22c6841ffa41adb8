import { core, definePlugin, type SvcConfig } from 'svc-gateway/plugin'
import { approvalsError } from './errors.js'
import { Inbox } from './inbox.js'
import { runOutcome } from './run-outcome.js'
import { runsByItself } from './policy.js'
import { approvalsRef } from './ref.js'

/** Calls of gated tools wait here for an operator, as rows that outlive the gateway. */
export default definePlugin({
  name: 'approvals',
  kind: 'service',
  apiVersion: 1,
  errors: approvalsError,
  requires: {
    clock: core.clock, config: core.config, events: core.events, plugins: core.plugins, rows: core.approvalRows,
    tools: core.tools
  },
  provides: [approvalsRef],
  register (ctx) {
    const { clock, config, events, plugins, rows, tools } = ctx.services
    const settings = (): SvcConfig['approvals'] => config.snapshot.svc.approvals
    const inbox = new Inbox({
      rows,
      clock,
      events,
      log: ctx.log,
      clean: text => config.withoutSecrets(text),
      errorOf: (code, message) => plugins.errorOf(code, message),
      ttlMs: () => settings().ttl_s * 1000,
      isAuto: ({ server, tool, byFile }) =>
        runsByItself(settings().auto, { server, tool, byFile, isOwn: tools.server(server)?.source?.tools === undefined }),
      run: async (row, approvedBy, signal) => runOutcome(await tools.run(row.server, row.tool, row.args, {
        actor: row.actor, agent: row.agent, private: row.private, signal, approvedBy, requestId: row.id
      }))
    })
    ctx.provide(approvalsRef, inbox)
    ctx.addHealth(() => inbox.health())
    const ends: Array<() => void> = []
    ctx.onStart(() => {
      inbox.resume()
      ends.push(tools.useGate(inbox), config.onChange((next, before) => {
        if (next.svc.approvals !== before.svc.approvals) inbox.lapse()
      }))
    })
    ctx.onStop(async () => {
      for (const end of ends) end()
      await inbox.close()
    })
  }
})
