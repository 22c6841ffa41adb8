import { isAbsolute } from 'node:path'
import { core, definePlugin } from 'svc-gateway/plugin'
import { agentLifecycleRef, agentsRef } from '../agents/ref.js'
import { boardRef, runProgram } from '../board/ref.js'
import { promptOf } from './prompt.js'

/** The agents that `svc agent install` brings take tasks of the board. */
export default definePlugin({
  name: 'board-agents',
  kind: 'service',
  apiVersion: 1,
  requires: { agents: agentsRef, board: boardRef, clock: core.clock, lifecycle: agentLifecycleRef, programs: core.programs },
  register (ctx) {
    const { agents, board, lifecycle, ...deps } = ctx.services
    const unregister = board.useRunner({
      agents: () => agents.list().filter(({ id }) => lifecycle.errands(id) !== null).map(({ id, name }) => ({ id, label: name })),
      run: async ({ run, agent, board: slug, task }, world) => {
        const errand = await lifecycle.errands(agent)?.(promptOf(slug, task))
        if (errand === undefined) throw new Error(`${agent} is no longer installed`)
        const { program, args, env, folder, problem } = errand
        if (task.workspace !== null && !isAbsolute(task.workspace)) throw new Error(`the workspace of the task is not an absolute path: ${task.workspace}`)
        const place = { SVC_AGENT: agent, SVC_BOARD: slug, SVC_TASK: task.id, SVC_RUN: run }
        const ended = runProgram(deps, { command: program, args, folder: task.workspace ?? folder, env: { ...env, ...place }, input: '' }, world)
        const failure = await ended.then(problem, async (error: unknown) => {
          await problem()
          throw error
        })
        const { code, last } = await ended
        if (code === 0 && failure === null) return { ok: true, message: last }
        return { ok: false, message: `${failure ?? `${agent} ended with ${code}`}${last === '' ? '' : `: ${last}`}` }
      },
      follow: listener => lifecycle.follow(listener),
      // the gateway itself ends what an earlier one left
      end: () => Promise.resolve()
    })
    ctx.onStop(unregister)
  }
})
