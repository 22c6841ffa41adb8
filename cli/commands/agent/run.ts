import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { dirname, join, sep } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure, ProgramEnded } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { pathTo } from '../../program-path.js'
import { agentRunSchema } from '../../record/agent-record.js'
import { runFolder } from './run-folder.js'

const NOTE = 'Arguments after -- go to the program unchanged. The gateway keeps the files that it writes for it in ~/.local/state/svc/agents/<agent>; ' +
  'its own configuration stays as it is.'

export function addAgentRun (agent: Command, cli: Cli): void {
  agent.command('run <agent> [args...]')
    .description('start an agent on this machine, connected to this gateway')
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples('svc agent run codex', 'svc agent run pi -- -p "What is in this folder?"'))
    .action(async (name: string, args: readonly string[], _options: object, command: Command) => {
      const client = cli.client(command)
      const folder = runFolder(name, cli.env)
      const run = await client.call({ path: pathOf`/api/agents/${name}/wiring`, query: { gateway: client.base, folder } }, agentRunSchema)
      const program = (run.installed === null ? null : await pathTo(run.installed, cli.env)) ?? await pathTo(run.program, cli.env)
      if (program === null) throw new CliFailure(`${run.program} is not on PATH`, { hints: ['`svc agent list` shows which programs are here.'] })
      await writeFiles(folder, run.files)
      const env = { ...cli.env, ...run.env }
      for (const first of run.prepare) {
        const code = await ended(program, first, env, 'ignore', cli)
        if (code !== 0) throw new CliFailure(`${run.program} ${first[0] ?? ''} ended with ${code}: it could not be connected to the gateway`)
      }
      const code = await ended(program, [...run.args, ...args], env, 'inherit', cli)
      if (code !== 0) throw new ProgramEnded(code)
    })
}

async function writeFiles (folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path)
    if (!file.startsWith(`${folder}${sep}`)) throw new CliFailure(`the gateway names a file outside of ${folder}: ${path}`)
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(file, text, { mode: 0o600 })
  }
}

/** Its exit code, or the shell's for a signal. The terminal sends Ctrl-C to both: what it means is the program's affair. */
async function ended (
  program: string, args: readonly string[], env: NodeJS.ProcessEnv, stdio: 'inherit' | 'ignore', cli: Cli
): Promise<number> {
  const child = spawn(program, args, { stdio, env, cwd: cli.process.cwd() })
  const stop = (): void => { child.kill('SIGTERM') }
  cli.signal.addEventListener('abort', stop, { once: true })
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', error => reject(new CliFailure(`${program} cannot be started: ${error.message}`)))
      child.once('close', (code, signal) => resolve(code ?? 128 + constants.signals[signal!]))
    })
  } finally {
    cli.signal.removeEventListener('abort', stop)
  }
}
