import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { aboutText } from '../../../kernel/contract/provider/engine-about.js'
import { stateWords } from '../../../kernel/contract/text/state-words.js'
import { pathOf, type ApiClient } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import type { Output } from '../../terminal/output.js'
import { modelOf, slotRecordSchema, type SlotRecord } from '../../record/slot-record.js'
import { slotProblems, stateColour, unreadProblems } from '../../record/slot-table.js'
import { harmless } from '../../terminal/text-width.js'

type Print = (out: Output, record: SlotRecord) => void

export function addSlotStatus (slot: Command, cli: Cli): void {
  addLook(slot.command('status <name>').description('show the state of a slot'), cli, 'svc slot status agent', (out, record) => {
    out.line(`${record.name} is ${out.paint(stateColour(record.state), stateWords(record.state))}${messageOf(record)}`)
    out.pairs(livePairs(record))
    printProblems(out, record)
  })
}

export function addSlotShow (slot: Command, cli: Cli): void {
  addLook(slot.command('show <name>').description('show everything about a slot'), cli, 'svc slot show agent', (out, record) => {
    out.pairs([
      ['name', record.name],
      ['state', `${record.state}${messageOf(record)}`],
      ['type', record.type ?? null],
      ['enabled', record.enabled ? 'yes' : 'no'],
      ['default', record.default ? 'yes, of its type' : null],
      ['device', record.device ?? null],
      ['provider', record.provider ?? null],
      ['profile', record.profile ?? null],
      ['context', record.ctx_max == null ? null : `${record.ctx_max} tokens`],
      ['idle timeout', record.idle_timeout_s == null ? null : `${record.idle_timeout_s} s`],
      ['extra args', argsOf(record)],
      ['engine', record.about == null ? null : aboutText(record.about)],
      ['image', record.image ?? null],
      ['image status', record.image_status ?? null],
      ...livePairs(record),
      ['command', record.resolved_command?.join(' ') ?? null]
    ])
    printProblems(out, record)
  })
}

function addLook (command: Command, cli: Cli, example: string, print: Print): void {
  command
    .option('--json', 'print the API response')
    .addHelpText('after', examples(example))
    .action(async (name: string, options: { json?: true }, self: Command) => {
      const client: ApiClient = cli.client(self)
      const call = { path: pathOf`/api/slots/${name}` }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const record = await client.call(call, slotRecordSchema)
      if (record.kind === 'unread') printUnread(cli.out, record)
      else print(cli.out, record)
    })
}

/** Of a slot whose file cannot be read nothing else is known. */
function printUnread (out: Output, record: SlotRecord): void {
  out.line(`${record.name} is in ${out.paint('red', 'error')}: ${harmless(record.metadata.message)}`)
  out.lines(unreadProblems(record).slice(1).map(problem => harmless(`${out.paint('yellow', '!')} ${problem}`)))
}

function messageOf ({ metadata: { message } }: SlotRecord): string {
  return message === '' ? '' : `: ${message}`
}

function livePairs (record: SlotRecord): Array<readonly [string, string | null]> {
  const { metadata, metrics } = record
  return [
    ['model', modelOf(record) || 'none'],
    ['port', record.port == null ? null : String(record.port)],
    ...Object.entries(record.ports).map(([name, port]) => [`port ${name}`, String(port)] as const),
    ...record.replicas.map(each => [`replica ${each.index}`, replicaText(each)] as const),
    ['url', record.url ?? null],
    ['runs', record.actual_image ?? null],
    ['memory', record.mem_mb == null || record.mem_mb === 0 ? null : `${record.mem_mb} MiB`],
    ['speed', metrics?.toks == null || metrics.toks === 0 ? null : `${metrics.toks.toFixed(1)} tokens/s`],
    ['requests', metadata.in_flight + metadata.waiting === 0 ? null : `${metadata.in_flight} running, ${metadata.waiting} waiting`]
  ]
}

function replicaText ({ state, port, in_flight: running, error }: SlotRecord['replicas'][number]): string {
  const parts = [state, ...port == null ? [] : [`port ${port}`], ...running === 0 ? [] : [`${running} running`], ...error == null ? [] : [error]]
  return harmless(parts.join(', '))
}

function argsOf ({ llamacpp_args: args }: SlotRecord): string | null {
  if (args == null) return null
  return typeof args === 'string' ? args : args.join(' ')
}

function printProblems (out: Output, record: SlotRecord): void {
  for (const problem of slotProblems(record)) out.line(harmless(`${out.paint('yellow', '!')} ${problem}`))
  const tail = record.metadata.failure?.log_tail ?? []
  if (tail.length === 0) return
  out.line('last lines of the engine:')
  out.lines(tail.slice(-20).map(line => `  ${harmless(line)}`))
}
