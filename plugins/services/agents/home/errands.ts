import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentDescriptor, AgentErrand } from 'svc-gateway/plugin'
import type { AgentHome } from './agent-home.js'
import type { AgentRecord } from '../book/record.js'
import type { Errand } from '../ref.js'

/** Runs of an agent's program for one task each; null where it takes none. */
export function errandsOf (
  home: AgentHome, agent: AgentDescriptor, record: AgentRecord
): ((prompt: string) => Promise<Errand>) | null {
  const program = home.programOf(agent, record)
  const { task } = agent
  if (task === undefined || program === null || record.installed_at === null || record.problem !== null) return null
  return prompt => errand(home, { agent, record, program, task }, prompt)
}

interface Errands {
  readonly agent: AgentDescriptor
  readonly record: AgentRecord
  readonly program: string
  readonly task: AgentErrand
}

async function errand (home: AgentHome, { agent, record, program, task }: Errands, prompt: string): Promise<Errand> {
  const { args, env } = await home.wire(agent, record)
  const folder = home.dataOf(agent.id)
  const report = join(folder, `report-${randomBytes(6).toString('hex')}`)
  return {
    program,
    args: [...args, ...task.args(prompt, report)],
    env: home.envOf(agent.id, program, env),
    folder,
    problem: async () => {
      const written = await readFile(report, 'utf8').catch(() => null)
      await rm(report, { force: true })
      return task.problem?.(written) ?? null
    }
  }
}
