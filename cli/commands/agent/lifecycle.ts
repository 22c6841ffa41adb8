import { rm } from 'node:fs/promises'
import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { harmless } from '../../terminal/text-width.js'
import { agentStatusSchema, type AgentStatusRecord } from '../../record/agent-record.js'
import { followInstallation, followWork } from '../../agent/follow-work.js'
import { removeCards } from '../../agent/identity-card.js'
import { runFolder } from './run-folder.js'

const phases = ['packages', 'replace', 'data', 'wiring', 'start', 'probe'] as const
/** Registries and Pythons are looked for before the answer comes. */
const START_MS = 60_000

interface Common { readonly json?: true, readonly dryRun?: true, readonly offline?: true, readonly skipPhase?: readonly string[] }

export function addAgentLifecycle (agent: Command, cli: Cli): void {
  const order = (command: Command, path: (name: string) => string, body: (name: string, options: never) => object): void => {
    command.option('--json', 'print the final state, as the API reports it')
      .action(async (name: string, options: Common, own: Command) => {
        const client = cli.client(own)
        const call = { method: 'POST', path: path(name), body: body(name, options as never), timeoutMs: START_MS } as const
        const begun = await client.call(call, agentStatusSchema)
        const follow = own.name() === 'install' ? followInstallation : followWork
        const ended = options.dryRun === true ? begun : await follow(cli, client, begun)
        await tell(cli, ended, options.json === true)
      })
  }
  order(withPlan(agent.command('install <agent>')
    .description('install an agent on the gateway\'s machine and set it up')
    .option('--switch', 'uninstall the agent that is installed now')
    .addOption(new Option('--form <form>', 'form of the installation; default is the best fit for that machine').choices(['npm', 'python', 'container']))
    .addHelpText('after', examples('svc agent install pi', 'svc agent install hermes --switch', 'svc agent install pi --dry-run'))),
  () => '/api/agents/install', (name, { switch: replaces, form, ...plan }: Common & { switch?: true, form?: string }) =>
    ({ name, switch: replaces === true, ...form === undefined ? {} : { form }, ...planOf(plan) }))
  order(agent.command('upgrade <agent>')
    .description('reinstall an agent; the old version stays until the new one works')
    .option('--to <version>', 'a version other than the one this release is tested with')
    .addHelpText('after', examples('svc agent upgrade pi', 'svc agent upgrade pi --to 0.73.2')),
  name => pathOf`/api/agents/${name}/upgrade`, (_name, { to }: { to?: string }) => to === undefined ? {} : { to })
  order(agent.command('reprovision <agent>')
    .description('repeat phases of an installation')
    .addOption(new Option('--phase <phase>', 'only this one').choices(phases.filter(phase => phase !== 'replace')))
    .option('--repair', 'reinstall its packages')
    .addHelpText('after', examples('svc agent reprovision pi', 'svc agent reprovision pi --phase wiring')),
  name => pathOf`/api/agents/${name}/reprovision`, (_name, { phase, repair }: { phase?: string, repair?: true }) =>
    ({ repair: repair === true, ...phase === undefined ? {} : { phase } }))
  order(withPlan(agent.command('bootstrap <agent>')
    .description('set up the data, wiring and server of an installed agent')
    .addHelpText('after', examples('svc agent bootstrap pi --offline'))),
  name => pathOf`/api/agents/${name}/bootstrap`, (_name, plan: Common) => planOf(plan))
  addUninstall(agent, cli)
  addStatus(agent, cli)
  addLog(agent, cli)
}

function withPlan (command: Command): Command {
  return command.option('--dry-run', 'only print what would be done')
    .option('--offline', 'download nothing: use what is already present')
    .addOption(new Option('--skip-phase <phase...>', 'leave it out').choices(phases))
}

function planOf ({ dryRun, offline, skipPhase = [] }: Common): object {
  return { dry_run: dryRun === true, offline: offline === true, skip_phases: skipPhase }
}

function addUninstall (agent: Command, cli: Cli): void {
  agent.command('uninstall <agent>')
    .description('stop an agent and uninstall it, with its configuration and sessions')
    .option('--keep-memory', 'keep its files of `svc agent run` on this machine, and its memories')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent uninstall pi'))
    .action(async (name: string, { keepMemory, json }: { keepMemory?: true, json?: true }, command: Command) => {
      const client = cli.client(command)
      if (keepMemory !== true) await removeCards(cli, client, name)
      const answer = await client.raw({ method: 'DELETE', path: pathOf`/api/agents/${name}`, timeoutMs: null })
      if (keepMemory !== true) await rm(runFolder(name, cli.env), { recursive: true, force: true })
      if (json === true) return cli.out.json(answer)
      const { status } = z.looseObject({ status: z.string() }).parse(answer)
      cli.out.line(status === 'uninstalled' ? `${name} is gone.` : `${name} was not installed.`)
    })
}

function addStatus (agent: Command, cli: Cli): void {
  agent.command('status <agent>')
    .description('show the version of an installed agent, and the progress of its installation')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent status pi'))
    .action(async (name: string, { json }: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/agents/${name}` }
      if (json === true) return cli.out.json(await client.raw(call))
      show(cli, await client.call(call, agentStatusSchema))
    })
}

function addLog (agent: Command, cli: Cli): void {
  const logSchema = z.looseObject({ phases: z.array(z.looseObject({ phase: z.string(), lines: z.array(z.string()) })) })
  agent.command('log <agent>')
    .description('show the output of the installation phases')
    .addOption(new Option('--phase <phase>', 'only this one').choices(phases))
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc agent log pi', 'svc agent log pi --phase packages'))
    .action(async (name: string, { phase: wanted, json }: { phase?: string, json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/agents/${name}/log` }
      if (json === true) return cli.out.json(await client.raw(call))
      for (const { phase, lines } of (await client.call(call, logSchema)).phases) {
        if (wanted === undefined || wanted === phase) cli.out.lines(lines.map(line => harmless(`${phase}: ${line}`)))
      }
    })
}

async function tell (cli: Cli, status: AgentStatusRecord, json: boolean): Promise<void> {
  if (json) cli.out.json(status)
  else if (status.problem === null) show(cli, status)
  if (status.problem !== null) {
    const { name, problem } = status
    throw new CliFailure(`${name}: ${problem}`, { hints: [`See what happened: svc agent log ${name}; try again: svc agent reprovision ${name}`] })
  }
}

function show (cli: Cli, agent: AgentStatusRecord): void {
  const { name, status, version, wanted_version: wanted, form, problem, phases: done, data_dir: data } = agent
  const { unit_active: active } = agent
  const drift = wanted !== null && version !== null && version !== wanted ? `, ${wanted} is wanted` : ''
  const server = active === null ? '' : active ? ', its server runs' : ', its server is not running'
  cli.out.line(harmless(`${name} ${version ?? ''} is ${status} (${form}${drift})${server}`))
  cli.out.line(harmless(`data: ${data}`))
  for (const [phase, { status: state, reason }] of Object.entries(done)) cli.out.line(harmless(`  ${phase}: ${state}${reason === null ? '' : ` (${reason})`}`))
  if (problem !== null) cli.out.line(harmless(`problem: ${problem}`))
}
