import { basename } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { nameSchema } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { giveEnvelope, readEnvelope } from '../../envelope-file.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { textOf } from '../../option-value.js'
import { modelsSchema, type StackModels } from '../../record/stack-record.js'
import { harmless } from '../../terminal/text-width.js'

const envelopeSchema = z.looseObject({ omitted: z.array(z.string()).default([]) })
const reportSchema = z.looseObject({ ...modelsSchema.shape, valid: z.boolean(), checksum_ok: z.boolean(), collides: z.boolean() })

export function addStackExport (stack: Command, cli: Cli): void {
  stack.command('export <slug>')
    .description('write a stack as a portable envelope to standard output')
    .option('-o, --output <file>', 'write it there')
    .addHelpText('after', '\nSecrets and paths of this machine are left out, and named.')
    .addHelpText('after', examples('svc stack export evening -o evening.svcstack.json'))
    .action(async (slug: string, options: { output?: string }, command: Command) => {
      const envelope = await cli.client(command).call({ method: 'POST', path: pathOf`/api/stacks/${slug}/export` }, envelopeSchema)
      await giveEnvelope(cli, `Stack ${slug}`, envelope, options.output)
    })
}

export function addStackImport (stack: Command, cli: Cli): void {
  stack.command('import <file>')
    .description('create a stack from an envelope; - reads standard input')
    .option('--slug <slug>', 'slug of the new stack; default is the name of the file', textOf(nameSchema))
    .option('--dry-run', 'check the envelope and its models, and change nothing')
    .option('--json', 'print the API response')
    .addHelpText('after', '\nA dry run exits with 1 if the import would fail.')
    .addHelpText('after', examples('svc stack import evening.svcstack.json --dry-run', 'svc stack import evening.svcstack.json --slug night'))
    .action(async (file: string, options: { slug?: string, dryRun?: true, json?: true }, command: Command) => {
      const envelope = await readEnvelope(cli, file, '`svc stack export` writes one.')
      const slug = options.slug ?? slugOf(file)
      const client = cli.client(command)
      const call = { method: 'POST', path: '/api/stacks/import', body: { envelope, slug, dry_run: options.dryRun === true } } as const
      if (options.dryRun === true) return tellReport(cli, slug, await client.call(call, reportSchema), options.json === true)
      const answer = await client.call(call, modelsSchema)
      if (options.json === true) return cli.out.json(answer)
      cli.out.line(`Stack ${slug} is created.`)
      tellModels(cli, answer)
      cli.out.line(`See what it would change: svc stack apply ${slug} --dry-run`)
    })
}

function slugOf (file: string): string {
  const slug = basename(file).replace(/(\.svcstack)?\.json$/, '')
  if (nameSchema.safeParse(slug).success) return slug
  throw usageFailure(`${file === '-' ? 'standard input has no name' : `${basename(file)} is not a valid name`} for a stack`, ['Give it one with --slug.'])
}

function tellReport (cli: Cli, slug: string, report: z.output<typeof reportSchema>, isJson: boolean): void {
  const { valid, checksum_ok: isWhole, collides } = report
  if (isJson) cli.out.json(report)
  if (!isWhole) throw new CliFailure('the checksum of the envelope is wrong: it was changed or truncated')
  if (!valid) throw new CliFailure('the envelope is not valid')
  if (collides) throw new CliFailure(`stack ${slug} already exists`, { hints: ['Import it under another one with --slug.'] })
  if (isJson) return
  cli.out.line(`The envelope is valid, and the slug ${slug} is free.`)
  tellModels(cli, report)
}

function tellModels ({ out }: Cli, { present, pullable, unresolvable }: StackModels): void {
  const lists: ReadonlyArray<readonly [string, readonly string[]]> = [
    ['Here', present], ['To be pulled', pullable], ['Unknown origin', unresolvable]
  ]
  for (const [title, ids] of lists) if (ids.length > 0) out.line(harmless(`${title}: ${ids.join(', ')}`))
}
