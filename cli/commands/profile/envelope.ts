import type { Command } from 'commander'
import { z } from 'zod'
import { nameSchema } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { giveEnvelope, readEnvelope } from '../../envelope-file.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { textOf } from '../../option-value.js'
import { profileRecordSchema } from '../../record/profile-record.js'

const envelopeSchema = z.looseObject({ name: z.string().optional(), omitted: z.array(z.string()).default([]) })
const reportSchema = z.looseObject({ valid: z.boolean(), checksum_ok: z.boolean(), name: z.string(), collides: z.boolean() })

export function addProfileExport (profile: Command, cli: Cli): void {
  profile.command('export <name>')
    .description('write a profile as a portable envelope to standard output')
    .option('-o, --output <file>', 'write it there')
    .addHelpText('after', '\nFlags that hold a secret or a path of this machine are left out, and named.')
    .addHelpText('after', examples('svc profile export rocm-long -o rocm-long.svcprofile.json'))
    .action(async (name: string, options: { output?: string }, command: Command) => {
      const envelope = await cli.client(command).call({ method: 'POST', path: pathOf`/api/profiles/${name}/export` }, envelopeSchema)
      await giveEnvelope(cli, `Profile ${name}`, envelope, options.output)
    })
}

export function addProfileImport (profile: Command, cli: Cli): void {
  profile.command('import <file>')
    .description('create a profile from an envelope; - reads standard input')
    .option('--name <name>', 'name of the new profile; default is the one in the envelope', textOf(nameSchema))
    .option('--dry-run', 'check the envelope and its name, and change nothing')
    .option('--json', 'print the API response')
    .addHelpText('after', '\nA dry run exits with 1 if the import would fail.')
    .addHelpText('after', examples('svc profile import rocm-long.svcprofile.json --dry-run', 'svc profile import rocm-long.svcprofile.json --name mine'))
    .action(async (file: string, options: { name?: string, dryRun?: true, json?: true }, command: Command) => {
      const envelope = await readEnvelope(cli, file, '`svc profile export` writes one.')
      const name = options.name ?? (typeof envelope.name === 'string' ? envelope.name : undefined)
      const client = cli.client(command)
      const call = { method: 'POST', path: '/api/profiles/import', body: { envelope, name, dry_run: options.dryRun === true } } as const
      if (options.dryRun === true) return tellReport(cli, await client.call(call, reportSchema), options.json === true)
      const profile = await client.call(call, profileRecordSchema)
      if (options.json === true) return cli.out.json(profile)
      cli.out.line(`Profile ${profile.name} is created.`)
    })
}

function tellReport (cli: Cli, report: z.output<typeof reportSchema>, isJson: boolean): void {
  const { valid, checksum_ok: isWhole, name, collides } = report
  if (isJson) cli.out.json(report)
  if (!isWhole) throw new CliFailure('the checksum of the envelope is wrong: it was changed or truncated')
  if (!valid) throw new CliFailure('the envelope is not valid')
  if (collides) throw new CliFailure(`profile ${name} already exists`, { hints: ['Import it under another name with --name.'] })
  if (!isJson) cli.out.line(`The envelope is valid, and the name ${name} is free.`)
}
