import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../help.js'
import type { Output } from '../../output.js'
import { harmless } from '../../text-width.js'

const keys = z.array(z.string()).default([])
const reloadedSchema = z.looseObject({
  _svc: z.looseObject({
    diagnostics: z.array(z.looseObject({ file: z.string(), path: z.string().default(''), message: z.string() })).default([]),
    apply_plan: z.looseObject({ live: keys, slot_restart: keys, gateway_restart: keys, slots: keys }).prefault({})
  })
})
type Reloaded = z.output<typeof reloadedSchema>['_svc']

export function addConfigReload (config: Command, cli: Cli): void {
  config.command('reload')
    .description('have the gateway read its configuration files again')
    .option('--json', 'print the answer of the API; the exit code tells all the same')
    .addHelpText('after', '\nIt ends with 1 when a file is broken: what it concerns keeps its last good form.')
    .addHelpText('after', examples('svc config reload'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const answer = await client.call({ method: 'POST', path: '/api/settings/reload', timeoutMs: null }, reloadedSchema)
      const { _svc: reloaded } = answer
      if (options.json === true) cli.out.json(answer)
      else printPlan(cli.out, reloaded)
      if (reloaded.diagnostics.length === 0) return
      throw new CliFailure('files of the configuration are broken; what they concern keeps its last good form', {
        hints: reloaded.diagnostics.map(({ file, path, message }) => harmless(`  ${file}: ${path === '' ? '' : `${path} `}${message}`))
      })
    })
}

function printPlan (out: Output, { apply_plan: plan }: Reloaded): void {
  out.line('The gateway has read its configuration again.')
  out.pairs([
    ['in force', listed(plan.live)],
    ['next start of engines', listed(plan.slot_restart)],
    ['next start of svc', listed(plan.gateway_restart)]
  ])
  for (const slot of plan.slots) out.line(harmless(`Slot ${slot} runs with other settings: svc slot restart ${slot}`))
}

function listed (names: readonly string[]): string | null {
  return names.length === 0 ? null : names.join(', ')
}
