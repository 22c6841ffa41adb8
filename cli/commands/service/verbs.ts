import { EXAMPLE } from '../../../plugins/services/companions/words.js'
import type { Command } from 'commander'
import { z } from 'zod'
import { serviceVerbs, type ServiceVerb } from '../../../kernel/contract/agent/companion.js'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'

const actedSchema = z.looseObject({ ok: z.boolean(), message: z.string() })

const abouts: Readonly<Record<ServiceVerb, string>> = {
  start: 'start a service and wait until it answers',
  stop: 'stop a service',
  restart: 'restart a service and wait until it answers',
  enable: 'start a service with the machine, or with the gateway that runs it',
  disable: 'do not start a service automatically'
}

export function addServiceVerbs (service: Command, cli: Cli): void {
  for (const verb of serviceVerbs) {
    service.command(`${verb} <service>`)
      .description(abouts[verb])
      .option('--json', 'print the API response; the exit code is the same either way')
      .addHelpText('after', examples(`svc service ${verb} ${EXAMPLE}`))
      .action(async (id: string, options: { json?: true }, command: Command) => {
        const answer = await cli.client(command).raw({ method: 'POST', path: pathOf`/api/services/${id}/action`, body: { action: verb }, timeoutMs: null })
        const { ok, message } = actedSchema.parse(answer)
        if (options.json === true) cli.out.json(answer)
        if (!ok) throw new CliFailure(options.json === true ? `${verb} of ${id} failed` : message)
        if (options.json !== true) cli.out.line(`${message}.`)
      })
  }
}
