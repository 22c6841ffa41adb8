import type { Command } from 'commander'
import { z } from 'zod'
import { ApiFailure } from '../client/api-failure.js'
import type { Cli } from '../cli.js'
import type { ApiClient } from '../client/client.js'
import { examples } from '../terminal/help.js'
import type { Output } from '../terminal/output.js'
import { diagnosticsSchema } from '../record/diagnostics.js'
import { packageOf, pluginListSchema, reasonOf, type PluginReport } from '../record/plugin-report.js'
import { slotListSchema, type SlotRecord } from '../record/slot-record.js'
import { countStates, printRemoteSlots, printSlotSummary, slotProblems } from '../record/slot-table.js'
import { harmless } from '../terminal/text-width.js'
import { runtimesSchema, runtimesText } from '../record/runtimes.js'
import { problemText } from '../../kernel/contract/text/problem-text.js'

const text = z.string().nullish()

const statusSchema = z.looseObject({
  name: z.string(),
  version: text,
  status: text,
  runtime: z.looseObject({ driver: z.string(), version: text, reason: text }).nullish(),
  runtimes: runtimesSchema,
  upstreams: z.array(z.looseObject({ name: z.string(), url: z.string().default(''), kind: z.string().default('remote') })).default([]),
  diagnostics: diagnosticsSchema
})
type Status = z.output<typeof statusSchema>

export function addStatusCommand (program: Command, cli: Cli): void {
  program.command('status')
    .description('show the state of the gateway and its slots')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc status', 'svc status --url http://192.168.1.20:8080'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/status' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const status = await client.call(call, statusSchema)
      // a group of routes whose plugin fell is one more thing to tell, not a reason to tell nothing
      const [slots, plugins] = await Promise.all([
        optional(client, '/api/slots?remote=true', slotListSchema), optional(client, '/api/plugins', pluginListSchema)
      ])
      printStatus(cli.out, client.base, status, slots, plugins)
    })
}

type Part<T> = T | ApiFailure

async function optional<S extends z.ZodType> (client: ApiClient, path: string, schema: S): Promise<Part<z.output<S>>> {
  try {
    return await client.call({ path }, schema)
  } catch (error) {
    if (error instanceof ApiFailure) return error
    throw error
  }
}

function printStatus (
  out: Output, base: string, status: Status, slots: Part<SlotRecord[]>, plugins: Part<PluginReport[]>
): void {
  const { runtime } = status
  const remotes = status.upstreams.filter(({ kind }) => kind === 'remote')
  const own = slots instanceof ApiFailure ? [] : slots.filter(({ kind }) => kind !== 'remote' && kind !== 'remote-slot')
  out.line(`${out.paint('bold', `${status.name} ${status.version ?? ''}`.trim())} at ${base}: ${status.status ?? 'ok'}`)
  out.pairs([
    ['runtime', runtime == null ? null : `${runtime.driver} ${runtime.version ?? ''}`.trim()],
    ['because', runtime?.reason ?? null],
    ['beside', runtimesText(status.runtimes.filter(({ default: isDefault }) => !isDefault))],
    ['slots', slots instanceof ApiFailure ? slots.message : countStates(own)],
    ['upstreams', String(remotes.length)],
    ['plugins', plugins instanceof ApiFailure ? plugins.message : countPlugins(plugins)]
  ])
  if (own.length > 0) {
    out.line()
    printSlotSummary(out, own)
  }
  if (remotes.length > 0) {
    const stateOf = (name: string): string => slots instanceof ApiFailure ? '-' : slots.find(slot => slot.kind === 'remote' && slot.name === name)?.state ?? '-'
    out.line()
    out.table([
      { title: 'UPSTREAM', cell: ({ name }) => name },
      { title: 'STATE', cell: ({ name }) => stateOf(name) },
      { title: 'ADDRESS', cell: ({ url }) => url, flexible: true }
    ], remotes)
  }
  const elsewhere = slots instanceof ApiFailure ? [] : slots.filter(({ kind }) => kind === 'remote-slot')
  if (elsewhere.length > 0) {
    out.line()
    out.line(out.paint('bold', 'Slots of other gateways'))
    printRemoteSlots(out, elsewhere)
  }
  printList(out, 'Gateways that do not report their slots', slots instanceof ApiFailure ? [] : slots.flatMap(({ name, remote_error: why }) =>
    why == null ? [] : [`${name}: ${why}`]))
  printList(out, 'Slots with problems', slots instanceof ApiFailure ? [] : slots.flatMap(slot =>
    slotProblems(slot).map(problem => `${slot.name}: ${problem}`)))
  printList(out, 'Plugins that are not active', plugins instanceof ApiFailure ? [] : plugins.filter(isDown).map(plugin =>
    `${packageOf(plugin) ?? plugin.name} ${plugin.state}: ${reasonOf(plugin)}`))
  printList(out, 'Problems in the configuration', status.diagnostics.map(({ file, path, message }) =>
    `${file}: ${problemText(path, message)}`))
}

function isDown ({ state }: PluginReport): boolean {
  return state !== 'active' && state !== 'disabled'
}

function countPlugins (plugins: readonly PluginReport[]): string {
  const active = plugins.filter(({ state }) => state === 'active').length
  const down = plugins.filter(isDown).length
  return `${active} active${down === 0 ? '' : `, ${down} not`}`
}

function printList (out: Output, title: string, items: readonly string[]): void {
  if (items.length === 0) return
  out.line()
  out.line(out.paint('bold', title))
  for (const item of items) {
    const [first = '', ...more] = out.folded(harmless(item), 4)
    out.lines([`  ${first}`, ...more.map(line => `    ${line}`)])
  }
}
