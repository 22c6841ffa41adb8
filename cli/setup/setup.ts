import { resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { CliFailure, usageFailure } from '../failure.js'
import type { AgentStatusRecord } from '../record/agent-record.js'
import { agentStatus, followInstallation } from '../agent/follow-work.js'
import { followPull } from '../pull/follow-pull.js'
import type { PullSnapshot } from '../pull/snapshot.js'
import { slotListSchema, type SlotRecord } from '../record/slot-record.js'
import { pullProblems } from '../record/slot-table.js'
import { harmless } from '../terminal/text-width.js'
import { extensionsUnderWay, extensionText, outcomeSchema, pulledModels, statusText, type Outcome, type SlotOutcome } from './outcome.js'
import { askSelections } from './questions.js'
import { withGateway, type SetupGateway } from './reach-gateway.js'

export interface SetupOptions {
  readonly auto?: true
  readonly storageDir?: string
  readonly pull: boolean
  readonly extensions: boolean
  readonly home?: string
  readonly json?: true
}

/** A driver in trouble may hold a probe for seconds. */
const PROBE_MS = 30_000
const SETTLE_MS = 30_000
const LOOK_MS = 200

/** From a bare machine to slots whose models are there. */
export async function runSetup (cli: Cli, command: Command, options: SetupOptions): Promise<void> {
  const { stdin, stderr } = cli.process
  if (options.auto !== true && (stdin.isTTY !== true || stderr.isTTY !== true)) {
    throw usageFailure('svc setup asks questions and needs a terminal', ['`svc setup --auto` asks nothing.'])
  }
  const homeFlag = command.getOptionValueSource('home') === 'cli' ? ` --home ${options.home ?? ''}` : ''
  const home = options.home === undefined || options.home === '' ? undefined : resolve(cli.process.cwd(), options.home)
  await withGateway(cli, command, home, async gateway => {
    const { offerEngine } = await import('./offline-engine.js')
    await offerEngine(cli, command, { home, isOwn: gateway.isOwn, asks: options.auto !== true, downloads: options.pull })
    const outcome = await provision(cli, gateway, options)
    if (outcome === null) return cli.out.line('Nothing was changed.')
    if (options.json !== true) printOutcome(cli, outcome)
    const pulls = await follow(cli, gateway, outcome)
    const agents = await followAgents(cli, gateway, outcome)
    await tellEnd(cli, gateway, { ...outcome, pulls, agents }, { ...options, homeFlag })
  })
}

/** Null when the operator thought better of it. */
async function provision (cli: Cli, gateway: SetupGateway, options: SetupOptions): Promise<Outcome | null> {
  const { client } = gateway
  const { storageDir, pull, extensions } = options
  const apply = (path: string, body: object): Promise<Outcome> =>
    resumable(cli, gateway, () => client.call({ method: 'POST', path, body, timeoutMs: null }, outcomeSchema))
  const { hardware } = await client.call({ method: 'POST', path: '/api/install/probe', timeoutMs: PROBE_MS }, probeSchema)
  const storage = storageDir === undefined ? undefined : resolve(cli.process.cwd(), storageDir)
  if (options.auto === true) {
    return await apply('/api/install/apply', { tier: 'auto', storage_dir: storage, pull, ...(extensions ? {} : { extensions: {} }) })
  }
  const selections = await askSelections(cli, client, { storage, extensions, hasNpu: hardware.npu.present })
  if (selections === null) return null
  return await apply('/api/install/apply-selections', { ...selections, pull })
}

const probeSchema = z.looseObject({
  hardware: z.looseObject({ npu: z.looseObject({ present: z.boolean().default(false) }).prefault({}) })
})

function printOutcome ({ out }: Cli, { tier, slots, extensions, warnings }: Outcome): void {
  for (const warning of warnings) out.note(harmless(`Warning: ${warning}`))
  if (tier !== undefined) out.line(`Tier ${tier}`)
  if (slots.length > 0) {
    out.table<SlotOutcome>([
      { title: 'SLOT', cell: ({ slot }) => slot },
      { title: 'MODEL', cell: ({ model_id: model }) => model === '' ? '-' : model },
      { title: 'DEVICE', cell: ({ device }) => device ?? '-', expendable: 2 },
      { title: 'PROFILE', cell: ({ profile }) => profile ?? '-', expendable: 1 },
      { title: 'RESULT', cell: statusText, flexible: true }
    ], slots)
  } else out.line('A chat slot already exists; none was created.')
  for (const extension of extensions) out.line(harmless(extensionText(extension)))
}

/** One after the other at the prompt; the gateway pulls several at a time. */
async function follow (cli: Cli, gateway: SetupGateway, outcome: Outcome): Promise<readonly PullSnapshot[]> {
  const snapshots: PullSnapshot[] = []
  await resumable(cli, gateway, async () => {
    for (const model of pulledModels(outcome)) snapshots.push(await followPull(cli, gateway.client, model))
  })
  return snapshots
}

/** To their ends: a gateway of this process would leave an installation to the next one. */
async function followAgents (cli: Cli, gateway: SetupGateway, outcome: Outcome): Promise<readonly AgentStatusRecord[]> {
  const { client } = gateway
  const ended: AgentStatusRecord[] = []
  for (const name of extensionsUnderWay(outcome)) {
    ended.push(await followInstallation(cli, client, await agentStatus(client, name)))
  }
  return ended
}

/** A user who interrupts once the gateway has its order is told what becomes of it: pulls begin before it has answered. */
async function resumable<T> (cli: Cli, { isOwn }: SetupGateway, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (cli.signal.aborted) {
      cli.out.note(isOwn
        ? 'Partial downloads are kept: `svc setup`, or the gateway once it is started with `svc serve`, resumes them.'
        : 'The gateway continues: slots start once their models are downloaded; `svc slot list` shows the progress.')
    }
    throw error
  }
}

interface Ended extends Outcome {
  readonly pulls: readonly PullSnapshot[]
  readonly agents: readonly AgentStatusRecord[]
}

async function tellEnd (
  cli: Cli, gateway: SetupGateway, outcome: Ended,
  { json, homeFlag }: SetupOptions & { readonly homeFlag: string }
): Promise<void> {
  const { out } = cli
  const records = await settled(cli, gateway.client, outcome)
  const parked = records.flatMap(record => pullProblems(record).map(problem => `${record.name}: ${problem}`))
  const refused = outcome.slots.filter(({ error, slot }) => error != null && !parked.some(line => line.startsWith(`${slot}:`)))
  const failures = [
    ...parked,
    ...refused.map(({ slot, error }) => `${slot}: ${error ?? ''}`),
    ...outcome.agents.flatMap(({ name, problem }) => problem === null ? [] : [`${name}: ${problem}; try again: svc agent reprovision ${name}`])
  ]
  if (json === true) out.json({ in_process: gateway.isOwn, ...outcome })
  if (failures.length > 0) throw new CliFailure('the setup is incomplete', { hints: failures.map(line => `  ${line}`) })
  if (json === true) return
  for (const { name, version } of outcome.agents) out.line(harmless(`${name} ${version ?? ''} is installed`))
  const [main] = records.filter(({ type, model_default: model }) => type === 'llm' && model != null)
  if (gateway.isOwn) out.line(`Start it: svc serve${homeFlag}${main === undefined ? '' : `, then: svc chat --slot ${main.name} "Hello"`}`)
  else if (main !== undefined) out.line(`Try it: svc chat --slot ${main.name} "Hello"`)
}

/** The slots of this setup, once those whose pulls are over have got their models. */
async function settled (cli: Cli, client: ApiClient, { slots, ...outcome }: Outcome): Promise<readonly SlotRecord[]> {
  const names = new Set(slots.filter(({ skipped }) => skipped == null).map(({ slot }) => slot))
  const pulled = new Set(pulledModels({ slots, ...outcome }))
  for (const end = performance.now() + SETTLE_MS; ;) {
    const records = (await client.call({ path: '/api/slots' }, slotListSchema)).filter(({ name }) => names.has(name))
    const isOpen = records.some(({ metadata: { pending_model: model, pull_failed: failed } }) =>
      model !== undefined && failed === undefined && pulled.has(model))
    if (!isOpen || performance.now() > end) return records
    await wait(LOOK_MS, undefined, { signal: cli.signal }).catch(() => cli.signal.throwIfAborted())
  }
}
