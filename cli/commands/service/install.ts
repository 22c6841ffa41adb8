import { EXAMPLE } from '../../../plugins/services/companions/words.js'
import { setTimeout as wait } from 'node:timers/promises'
import { Option, type Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { installationSchema, type Installation, type ServiceRecord } from '../../record/service-record.js'
import { oneLine, truncate } from '../../terminal/text-width.js'
import { homeOption } from '../serve.js'
import { serviceOf } from './list.js'

interface InstallOptions {
  readonly form?: 'python' | 'container'
  readonly yes?: true
  readonly json?: true
  readonly print?: true
  readonly user?: string
  readonly allow?: readonly string[]
  readonly folder?: string
}

/** A Python has to be found, and a registry asked, before the answer comes. */
const START_MS = 60_000
const LOOK_EVERY_MS = 300

const NOTE = 'With a name: the gateway installs that service, in its own environment, as a container, or as a slot.\n' +
  'Without: installs the gateway itself as a service of this machine (as root): a systemd unit, or a launchd job on macOS.'

export function addServiceInstall (service: Command, cli: Cli): void {
  service.command('install [service]')
    .description('install a service on this machine; without a name, the gateway itself')
    .addOption(new Option('--form <form>', 'how it runs; default is the best fit for this machine').choices(['python', 'container']))
    .option('-y, --yes', 'do not ask about its licence')
    .option('--json', 'print the final state, as the API reports it')
    .option('--print', 'of the gateway: print its files and change nothing')
    .option('--user <name>', 'of the gateway: the user that it runs as; default: svc, created if missing; on macOS, the user who called sudo')
    .addOption(new Option('--allow <unit>', 'of the gateway: another unit that it may start and stop; may be given more than once').argParser((unit: string, before: readonly string[] = []) => [...before, unit]))
    .addOption(new Option('--folder <dir>', 'of the gateway: folder for its unit').hideHelp())
    .addOption(homeOption())
    .addHelpText('after', `\n${NOTE}`)
    .addHelpText('after', examples(`svc service install ${EXAMPLE}`, 'sudo svc service install', 'svc service install --print'))
    .action(async (id: string | undefined, options: InstallOptions, command: Command) => {
      if (id === undefined) {
        if (options.form !== undefined) throw usageFailure('--form needs the name of a service')
        const { installGateway } = await import('../../unit/install-gateway.js')
        return await installGateway(cli, command, options)
      }
      if (options.print === true) throw usageFailure('--print is for the gateway itself, without the name of a service')
      await installService(cli, cli.client(command), id, options)
    })
}

export function addServiceUninstall (service: Command, cli: Cli): void {
  service.command('uninstall [service]')
    .description('stop and uninstall a service; without a name, remove the unit of the gateway')
    .option('--data', 'also delete its data: chats, documents, accounts')
    .option('-y, --yes', 'do not ask')
    .addOption(new Option('--folder <dir>', 'of the gateway: folder of its unit').hideHelp())
    .addHelpText('after', '\nWithout a name the home, its models and its configuration stay.')
    .addHelpText('after', examples(`svc service uninstall ${EXAMPLE}`, `svc service uninstall ${EXAMPLE} --data --yes`))
    .action(async (id: string | undefined, options: { data?: true, yes?: true, folder?: string }, command: Command) => {
      if (id === undefined) {
        if (options.data === true) throw usageFailure('--data needs the name of a service')
        const { uninstallGateway } = await import('../../unit/install-gateway.js')
        return await uninstallGateway(cli, options)
      }
      const client = cli.client(command)
      const { name } = await serviceOf(client, id)
      const what = options.data === true ? `Delete ${name} and all its data?` : null
      if (what !== null && options.yes !== true && !await confirm(cli, what)) throw new CliFailure('nothing was changed')
      await client.raw({ method: 'DELETE', path: pathOf`/api/services/${id}/install`, query: { data: options.data === true }, timeoutMs: null })
      cli.out.line(options.data === true ? `${name} is gone.` : `${name} is uninstalled; its data is kept.`)
    })
}

async function installService (cli: Cli, client: ApiClient, id: string, { form, yes, json }: InstallOptions): Promise<void> {
  const record = await serviceOf(client, id)
  const { licence: { name: licence, note, url } } = record
  cli.out.note(`${record.name}: ${licence}${note === null ? '' : `, ${note}`}${url === null ? '' : ` (${url})`}`)
  if (note !== null && yes !== true && !await confirm(cli, `Install ${record.name}?`)) throw new CliFailure('nothing was installed')
  const path = pathOf`/api/services/${id}/install`
  const begun = await client.call({ method: 'POST', path, body: form === undefined ? {} : { form }, timeoutMs: START_MS }, installationSchema)
  const ended = await followInstall(cli, client, path, record, begun)
  if (json === true) cli.out.json(ended)
  if (ended.state !== 'installed') throw new CliFailure(`${record.name} is not installed: ${ended.message}`)
  if (json === true) return
  cli.out.line(`${record.name}${ended.version === null ? '' : ` ${ended.version}`} is installed.`)
  for (const setting of ended.settings) cli.out.line(`svc.toml now sets [${setting.replace('.', '] ')} for it.`)
  // a slot is loaded by its requests
  if (ended.form === 'slot') return cli.out.line(`${record.name}: ${ended.message}`)
  cli.out.line(`Start it: svc service start ${id}; start it with the gateway: svc service enable ${id}`)
}

/** Says what goes on: drawn over at a terminal, a line for each step elsewhere. */
async function followInstall (
  cli: Cli, client: ApiClient, path: string, { name }: ServiceRecord, begun: Installation
): Promise<Installation> {
  let [now, told] = [begun, '']
  try {
    while (now.state === 'installing') {
      const line = truncate(oneLine(`${name}: ${now.message}`), cli.out.width - 1)
      if (line !== told && cli.out.animated) cli.out.redraw(line)
      else if (line !== told && /: (making|installing|pulling [^:]*$)/.test(line)) cli.out.note(line)
      told = line
      await wait(LOOK_EVERY_MS, undefined, { signal: cli.signal })
      now = await client.call({ path }, installationSchema)
    }
  } catch (error) {
    if (cli.signal.aborted) cli.out.note('The gateway continues: `svc service list` shows the progress.')
    cli.signal.throwIfAborted()
    throw error
  } finally {
    cli.out.redraw('')
  }
  return now
}
