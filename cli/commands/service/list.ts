import { EXAMPLE } from '../../../plugins/services/companions/words.js'
import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import type { ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { numberOf } from '../../option-value.js'
import { isAbsent, serviceListSchema, stateOf, type ServiceRecord } from '../../record/service-record.js'
import { harmless } from '../../terminal/text-width.js'

const linesSchema = z.looseObject({ lines: z.array(z.string()), hint: z.string().optional() })
const complaintSchema = z.looseObject({ message: z.string() })
const lineCount = z.int().min(1).max(5000)

export function addServiceList (service: Command, cli: Cli): void {
  service.command('list')
    .description('list services with their runtimes and states')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc service list'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/services' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { services } = await client.call(call, serviceListSchema)
      cli.out.table([
        { title: 'SERVICE', cell: ({ id }) => id },
        { title: 'STATE', cell: record => stateOf(record).word, paint: (text, record) => cli.out.paint(stateOf(record).colour, text) },
        { title: 'RUNS AS', cell: ({ runs_as: form }) => form ?? '-' },
        { title: 'STARTS', cell: ({ unit_state: unit }) => unit?.unit_file_state === 'enabled' ? 'by itself' : '-', expendable: 1 },
        { title: 'ADDRESS', cell: ({ url, managed, up }) => managed || up ? url ?? '-' : '-', flexible: true }
      ], services)
      for (const record of services) {
        if (!record.up && record.unit_state?.active_state === 'failed') cli.out.line(harmless(`${record.id}: ${record.detail}`))
        const brings = record.hints.find(hint => hint.endsWith('brings it'))
        if (!record.managed && !record.up && brings !== undefined) cli.out.note(harmless(`${record.id}: ${brings}`))
      }
    })
}

export function addServiceLogs (service: Command, cli: Cli): void {
  service.command('logs <service>')
    .description('print the output of a service')
    .option('-f, --follow', 'keep printing new lines until interrupted')
    .addOption(new Option('-n, --lines <count>', 'number of last lines').argParser(numberOf(lineCount)).default(200))
    .addHelpText('after', examples(`svc service logs ${EXAMPLE} -n 50`, `svc service logs ${EXAMPLE} --follow`))
    .action(async (id: string, options: { follow?: true, lines: number }, command: Command) => {
      const client = cli.client(command)
      const record = await serviceOf(client, id)
      const query = { unit: record.unit, n: options.lines }
      if (options.follow === true) {
        if (isAbsent(record)) throw absent(record)
        return await follow(cli, client, query)
      }
      const { lines, hint } = await client.call({ path: '/api/logs', query }, linesSchema)
      // the journal may still have lines of one that was taken away
      if (lines.length === 0 && isAbsent(record)) throw absent(record)
      cli.out.lines(lines.map(harmless))
      if (hint !== undefined) cli.out.note(hint)
    })
}

/** Throws a `CliFailure` that names the services that there are. */
export async function serviceOf (client: ApiClient, id: string): Promise<ServiceRecord> {
  const { services } = await client.call({ path: '/api/services' }, serviceListSchema)
  const found = services.find(record => record.id === id)
  if (found !== undefined) return found
  throw new CliFailure(`there is no service '${id}'`, { hints: [`There are ${services.map(record => record.id).join(', ')}.`] })
}

function absent ({ id, name, runs_as: form, hints }: ServiceRecord): CliFailure {
  const brings = `Install it with \`svc service install ${id}\`.`
  // where nothing fits at the moment the gateway says whether it could be brought
  const isBrought = form === 'container' || form === 'python' || hints.includes(brings)
  return new CliFailure(`${name} is not installed, so it has no output`, { hints: isBrought ? [brings] : [] })
}

async function follow (
  { out, signal }: Cli, client: ApiClient, query: { readonly unit: string, readonly n: number }
): Promise<void> {
  for await (const { event, data } of client.events({ path: '/api/logs/stream', query })) {
    const value: unknown = JSON.parse(data)
    if (event === 'error') out.note(complaintSchema.safeParse(value).data?.message ?? data)
    else await out.write(`${harmless(typeof value === 'string' ? value : data)}\n`, signal)
  }
}
