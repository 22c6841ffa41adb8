import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { appliedSchema, stackPlanSchema, type AppliedStack } from '../../record/stack-record.js'
import { harmless } from '../../terminal/text-width.js'

interface ApplyOptions {
  readonly dryRun?: true
  readonly yes?: true
  readonly force?: true
  readonly json?: true
}

export function addStackApply (stack: Command, cli: Cli): void {
  stack.command('apply <slug>')
    .description('apply a stack: its slots run, all others are unloaded')
    .option('--dry-run', 'show what would change, and change nothing')
    .option('-y, --yes', 'do not ask')
    .option('-f, --force', 'apply it even if a serving slot would not start again')
    .option('--json', 'print the API response; does not ask')
    .addHelpText('after', '\nWaits for the slots, and exits with 1 if one failed. The gateway continues after Ctrl-C.')
    .addHelpText('after', examples('svc stack apply saber --dry-run', 'svc stack apply saber --yes'))
    .action(async (slug: string, { dryRun, yes, json, force }: ApplyOptions, command: Command) => {
      const client = cli.client(command)
      const call = { method: 'POST', path: pathOf`/api/stacks/${slug}/apply`, query: { dry_run: dryRun === true, force: force === true } } as const
      if (dryRun === true && json === true) return cli.out.json(await client.raw(call))
      if (json !== true && (dryRun === true || yes !== true)) {
        const { summary, warnings, troubles } = await client.call({ ...call, query: { dry_run: true } }, stackPlanSchema)
        for (const line of summary) cli.out.line(`  ${harmless(line)}`)
        for (const warning of warnings) cli.out.note(harmless(`Warning: ${warning}`))
        const broken = [...new Set(troubles.filter(({ serves }) => serves).map(({ slot }) => slot))]
        if (broken.length > 0 && force !== true) throw wouldBreak(slug, broken)
        if (dryRun === true) return
        if (!await confirm(cli, `Apply stack ${slug}?`)) throw new CliFailure('nothing was changed')
      }
      const applied = await client.call({ ...call, timeoutMs: null }, appliedSchema)
      if (json === true) cli.out.json(applied)
      else tellApplied(cli, slug, applied, yes === true)
      const { errors } = applied.converged
      if (errors.length === 0) return
      throw new CliFailure(`stack ${slug} is active, but not all of it is running`,
        { hints: [...errors.map(({ target, error }) => harmless(`${target}: ${error}`)), `Try again: svc stack apply ${slug}`] })
    })
}

function tellApplied ({ out }: Cli, slug: string, { summary, warnings, converged }: AppliedStack, isNew: boolean): void {
  if (isNew) {
    for (const line of summary) out.line(`  ${harmless(line)}`)
    for (const warning of warnings) out.note(harmless(`Warning: ${warning}`))
  }
  const { loaded, swapped, reloaded, unloaded, capabilities_applied: applied, errors } = converged
  const parts = Object.entries({ loaded, swapped, reloaded, unloaded, 'put into force': applied })
    .filter(([, names]) => names.length > 0).map(([verb, names]) => `${verb}: ${names.join(', ')}`)
  const rest = parts.length > 0 ? `; ${parts.join('; ')}` : errors.length > 0 ? '' : '; everything was already running'
  const verb = errors.length > 0 ? 'is configured' : 'is applied'
  out.line(harmless(`Stack ${slug} ${verb}${rest}${errors.length > 0 ? `; failed: ${errors.map(({ target }) => target).join(', ')}` : ''}.`))
}

function wouldBreak (slug: string, slots: readonly string[]): CliFailure {
  const dead = slots.length === 1 ? `slot ${slots[0]!} is serving and would not` : `slots ${slots.join(', ')} are serving and would not`
  return new CliFailure(`stack ${slug} does not fit this host: ${dead} start again; nothing was changed`,
    { hints: [`Fix what the warnings name, or apply it anyway: svc stack apply ${slug} --force`] })
}
