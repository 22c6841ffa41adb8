import type { Clock, Programs } from 'svc-gateway/plugin'
import type { AgentRunner } from './agent-runner.js'
import { runProgram } from './program-run.js'

/** An agent is a program of this machine. */
export interface AgentCommand {
  readonly label: string
  readonly command: readonly string[]
  readonly folder: string | null
  readonly env: Readonly<Record<string, string>>
}

export interface CommandDeps {
  readonly clock: Clock
  readonly programs: Programs
  readonly agents: Readonly<Record<string, AgentCommand>>
  /** Null while the gateway does not listen. */
  readonly baseUrl: () => string | null
}

/**
 * Agents of `[plugins.config.board.agents]`: a program gets its task as JSON on its standard input, and words of where it is in
 * its environment. What it writes is the log of the run, the last line of its standard output the summary; 0 means done.
 */
export function commandRunner ({ agents, baseUrl, ...deps }: CommandDeps): AgentRunner {
  return {
    agents: () => Object.entries(agents).map(([id, { label }]) => ({ id, label: label === '' ? id : label })),
    run: async ({ run, agent, board, task }, world) => {
      const { command: [program = '', ...args], folder, env } = agents[agent]!
      const place = { SVC_API_URL: baseUrl() ?? '', SVC_AGENT: agent, SVC_BOARD: board, SVC_TASK: task.id, SVC_RUN: run }
      const input = `${JSON.stringify({ run, board, task })}\n`
      const { code, last } = await runProgram(deps, { command: program, args, folder, env: { ...env, ...place }, input }, world)
      return code === 0 ? { ok: true, message: last } : { ok: false, message: `${program} ended with ${code}${last === '' ? '' : `: ${last}`}` }
    },
    // the gateway itself ends what an earlier one left
    end: () => Promise.resolve()
  }
}
