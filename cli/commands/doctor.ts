import { InvalidArgumentError, Option, type Command } from 'commander'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { DoctorOptions } from '../offline/doctor/doctor.js'
import type { PermsOptions } from '../offline/doctor/perms.js'
import type { UpgradeOptions } from '../offline/doctor/upgrade.js'
import type { ToolboxOptions } from '../offline/doctor/toolbox-pull.js'
import { homeOption } from './serve.js'

/** What looks at the machine is loaded when it is needed. */
export function addDoctorCommands (program: Command, cli: Cli): void {
  const doctor = program.command('doctor')
    .description('check whether this machine has what the gateway needs')
    .option('--plain', 'print words instead of symbols and colours')
    .addOption(new Option('--ports <ports>', 'ports that must be free or in use by svc; default is those of the gateway and its slots')
      .env('SVC_DOCTOR_PORTS').argParser(parsePorts))
    .option('--json', 'print the result of each check')
    .addOption(homeOption())
    .addHelpText('after', '\nAll checks run even if one fails. Exits with 1 if one failed; warnings do not count.')
    .addHelpText('after', examples('svc doctor', 'svc doctor --ports "8080 8081"', 'svc doctor --json'))
    .action(async (options: DoctorOptions, command: Command) => {
      const { runDoctor } = await import('../offline/doctor/doctor.js')
      await runDoctor(cli, command, options)
    })
  doctor.command('toolbox-pull')
    .description('check whether the images of the manifest can be pulled anonymously')
    .option('--manifest <file>', 'manifest to check; default is the active one')
    .option('--json', 'print one row for each image')
    .addOption(homeOption())
    .addHelpText('after', '\nExit code 0: all can be pulled, even if a tag has moved on from its pinned digest. 1: one cannot.\n2: there are no images.')
    .addHelpText('after', examples('svc doctor toolbox-pull', 'svc doctor toolbox-pull --manifest manifest.json --json'))
    .action(async (_options: ToolboxOptions, command: Command) => {
      const { checkToolbox } = await import('../offline/doctor/toolbox-pull.js')
      const { homeOf } = await import('../offline/home/home-of.js')
      await checkToolbox(cli, await homeOf(cli, command), command.optsWithGlobals<ToolboxOptions>())
    })
  doctor.command('upgrade')
    .description('check on a copy of a home whether this release can use it')
    .option('--json', 'print the results for configuration, database and plugins')
    .addOption(homeOption())
    .addHelpText('after', '\nAn update runs this with the new release before it switches. The home itself is only read.\nExits with 1 if the release cannot use the home.')
    .addHelpText('after', examples('svc doctor upgrade --home /srv/svc'))
    .action(async (_options: UpgradeOptions, command: Command) => {
      const { checkUpgrade } = await import('../offline/doctor/upgrade.js')
      const { homeOf } = await import('../offline/home/home-of.js')
      await checkUpgrade(cli, await homeOf(cli, command), command.optsWithGlobals<UpgradeOptions>())
    })
  doctor.command('perms')
    .description('check who owns the files of a home, and who may read and write them')
    .option('--fix', 'fix what is wrong; needs root')
    .option('--json', 'print one row for each path')
    .addOption(homeOption())
    .addHelpText('after', '\nThe owner of the state folder is taken for the user of the gateway.\nExits with 1 if something is wrong.')
    .addHelpText('after', examples('svc doctor perms', 'sudo svc doctor perms --fix'))
    .action(async (_options: PermsOptions, command: Command) => {
      const { checkPerms } = await import('../offline/doctor/perms.js')
      const { homeOf } = await import('../offline/home/home-of.js')
      await checkPerms(cli, await homeOf(cli, command), command.optsWithGlobals<PermsOptions>())
    })
}

function parsePorts (text: string): number[] {
  const ports = text.split(/[\s,]+/).filter(word => word !== '').map(word => /^\d{1,5}$/.test(word) ? Number(word) : NaN)
  if (ports.length === 0 || ports.some(port => !(port >= 1 && port <= 65535))) {
    throw new InvalidArgumentError('It must be ports from 1 to 65535, separated by spaces.')
  }
  return ports
}
