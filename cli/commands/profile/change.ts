import { Option, type Command } from 'commander'
import { deviceClasses, gpuBackends, nameSchema, profileSchema } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { textOf } from '../../option-value.js'
import { profileRecordSchema, type ProfileRecord } from '../../record/profile-record.js'

interface ProfileOptions {
  readonly image?: string
  readonly flags?: string
  readonly mtp?: boolean
  readonly deviceClass?: string
  readonly backend?: string
  readonly intent?: string
  readonly quant?: string
}

function addProfileOptions (command: Command): Command {
  return command
    .addOption(new Option('--image <image>', 'container image, or a short name of the manifest').argParser(textOf(profileSchema.shape.image)))
    .option('--flags <flags>', 'flags of the engine, without model, port and context size')
    .addOption(new Option('--device-class <class>', 'what it runs on').choices(deviceClasses))
    .addOption(new Option('--backend <backend>', 'runtime of the GPU').choices(gpuBackends))
    .option('--mtp', 'opt in to multi-token prediction')
    .option('--no-mtp', 'opt out of multi-token prediction')
    .option('--intent <text>', 'description for people')
    .option('--quant <text>', 'intended quantisation, for people')
}

/** What was not given is not in it. */
function bodyOf ({ image, flags, mtp, deviceClass, backend, intent, quant }: ProfileOptions): Record<string, unknown> {
  return { image, flags, mtp, device_class: deviceClass, backend, intent, quant }
}

export function addProfileCreate (profile: Command, cli: Cli): void {
  addProfileOptions(profile.command('create')
    .description('create a profile, from scratch or from another one')
    .argument('<name>', 'name of the new profile', textOf(nameSchema))
    .option('--from <profile>', 'take every value that is not given here from this profile'))
    .addHelpText('after', examples(
      'svc profile create rocm-long --from rocm --flags "--flash-attn on"',
      'svc profile create mine --image ghcr.io/owner/engine:v1 --device-class cpu'
    ))
    .action(async (name: string, options: ProfileOptions & { from?: string }, command: Command) => {
      const client = cli.client(command)
      const { from } = options
      if (from === undefined && options.image === undefined) {
        throw usageFailure('an image is needed', ['Name one with --image, or a profile that has one with --from.'])
      }
      const base = from === undefined ? {} : baseOf(await client.call({ path: pathOf`/api/profiles/${from}` }, profileRecordSchema))
      const given = Object.fromEntries(Object.entries(bodyOf(options)).filter(([, value]) => value !== undefined))
      // a backend belongs to GPUs
      if (given.device_class !== undefined && given.device_class !== 'gpu') delete base.backend
      await client.call({ method: 'POST', path: '/api/profiles', body: { name, ...base, ...given } }, profileRecordSchema)
      cli.out.line(`Profile ${name} is created.`)
      cli.out.line(`Use it: svc slot edit <slot> --profile ${name}`)
    })
}

function baseOf (profile: ProfileRecord): Record<string, unknown> {
  const { name, image, flags, mtp, device_class, backend, intent, quant } = profile
  return { image, flags, mtp, device_class, backend, intent, quant, cloned_from: name }
}

export function addProfileEdit (profile: Command, cli: Cli): void {
  addProfileOptions(profile.command('edit <name>')
    .description('change a profile; built-in ones can be cloned with create --from'))
    .addHelpText('after', '\nRunning slots keep the old settings until they are restarted.')
    .addHelpText('after', examples('svc profile edit rocm-long --flags "--flash-attn on"'))
    .action(async (name: string, options: ProfileOptions, command: Command) => {
      if (Object.keys(options).length === 0) throw usageFailure('no changes were given', ['Run `svc profile edit --help` to see the options.'])
      const { used_by: users } = await cli.client(command)
        .call({ method: 'PUT', path: pathOf`/api/profiles/${name}`, body: bodyOf(options) }, profileRecordSchema)
      cli.out.line(`Profile ${name} is changed.`)
      if (users.length > 0) cli.out.line(`Restart these slots to apply it: ${users.join(', ')}`)
    })
}

export function addProfileDelete (profile: Command, cli: Cli): void {
  profile.command('delete <name>')
    .description('delete a profile that no slot uses')
    .option('-f, --force', 'do not ask; without a terminal svc never does')
    .addHelpText('after', examples('svc profile delete rocm-long'))
    .action(async (name: string, options: { force?: true }, command: Command) => {
      if (options.force !== true && !await confirm(cli, `Delete profile ${name}?`)) throw new CliFailure('nothing was deleted')
      await cli.client(command).raw({ method: 'DELETE', path: pathOf`/api/profiles/${name}` })
      cli.out.line(`Profile ${name} is deleted.`)
    })
}
