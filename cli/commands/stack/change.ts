import type { Command } from 'commander'
import { z } from 'zod'
import { nameSchema } from '../../../kernel/contract/schemas/index.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { textOf } from '../../option-value.js'
import { stackRecordSchema } from '../../record/stack-record.js'

export function addStackSnapshot (stack: Command, cli: Cli): void {
  stack.command('snapshot')
    .description('save the current configuration as a stack')
    .argument('<slug>', 'slug of the new stack', textOf(nameSchema))
    .option('--name <name>', 'display name; default is the slug', textOf(z.string().min(1)))
    .option('--description <text>', 'what it is for')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc stack snapshot evening --description "one large model"'))
    .action(async (slug: string, options: { name?: string, description?: string, json?: true }, command: Command) => {
      const body = { slug, name: options.name ?? slug, description: options.description }
      const answer = await cli.client(command)
        .call({ method: 'POST', path: '/api/stacks/snapshot', body }, z.looseObject({ stack: stackRecordSchema }))
      if (options.json === true) return cli.out.json(answer)
      const { slots } = answer.stack
      cli.out.line(`Stack ${slug} has ${slots.length === 0 ? 'no slots' : slots.map(({ slot }) => slot).join(', ')}.`)
    })
}

export function addStackDelete (stack: Command, cli: Cli): void {
  stack.command('delete <slug>')
    .description('delete a stack; slots stay as they are')
    .option('-f, --force', 'do not ask; without a terminal svc never does')
    .addHelpText('after', examples('svc stack delete evening'))
    .action(async (slug: string, options: { force?: true }, command: Command) => {
      if (options.force !== true && !await confirm(cli, `Delete stack ${slug}?`)) throw new CliFailure('nothing was deleted')
      await cli.client(command).raw({ method: 'DELETE', path: pathOf`/api/stacks/${slug}` })
      cli.out.line(`Stack ${slug} is deleted.`)
    })
}
