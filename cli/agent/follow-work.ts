import { setTimeout as wait } from 'node:timers/promises'
import type { Cli } from '../cli.js'
import { pathOf, type ApiClient } from '../client/client.js'
import { agentStatusSchema, type AgentStatusRecord } from '../record/agent-record.js'
import { writeCard } from './identity-card.js'

const LOOK_EVERY_MS = 300

/** Says each phase as it comes, until nothing is under way. */
export async function followWork (cli: Cli, client: ApiClient, begun: AgentStatusRecord): Promise<AgentStatusRecord> {
  const { name } = begun
  let [now, told] = [begun, '']
  while (now.status === 'installing') {
    const running = Object.entries(now.phases).find(([, { status }]) => status === 'running')?.[0] ?? ''
    if (running !== '' && running !== told) cli.out.note(`${name}: ${running}`)
    told = running
    await wait(LOOK_EVERY_MS, undefined, { signal: cli.signal }).catch(() => {
      cli.out.note(`The gateway continues: \`svc agent status ${name}\` shows its progress.`)
      cli.signal.throwIfAborted()
    })
    now = await agentStatus(client, name)
  }
  return now
}

/** The same for an installation: an agent that is there then introduces itself to the memory. */
export async function followInstallation (cli: Cli, client: ApiClient, begun: AgentStatusRecord): Promise<AgentStatusRecord> {
  const ended = await followWork(cli, client, begun)
  if (ended.status === 'installed') await writeCard(cli, client, ended.name, ended.version)
  return ended
}

export async function agentStatus (client: ApiClient, name: string): Promise<AgentStatusRecord> {
  return await client.call({ path: pathOf`/api/agents/${name}` }, agentStatusSchema)
}
