import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import { examples } from '../terminal/help.js'
import type { Colour, Output } from '../terminal/output.js'
import { numberOf } from '../option-value.js'
import { tableLines, type Column } from '../terminal/table.js'
import { harmless, truncate } from '../terminal/text-width.js'
import { watch } from '../terminal/watch.js'

const text = z.string().nullish()
const requestSchema = z.looseObject({
  id: z.string(),
  model: z.string(),
  agent: text,
  slot: text,
  upstream: text,
  phase: z.string(),
  reason: text,
  age_ms: z.number(),
  bytes_in: z.number(),
  bytes_out: z.number(),
  tokens: z.number()
})
type Request = z.output<typeof requestSchema>
const listSchema = z.looseObject({ requests: z.array(requestSchema) })

interface PsOptions {
  readonly json?: true
  readonly watch?: true
  readonly interval: number
}

export function addPsCommand (program: Command, cli: Cli): void {
  program.command('ps')
    .description('list the requests in flight and what each is waiting for')
    .addOption(new Option('--json', 'print the API response').conflicts('watch'))
    .option('-w, --watch', 'update until Ctrl-C: in place on a terminal, else one line per change')
    .addOption(new Option('--interval <seconds>', 'how often to update').argParser(numberOf(z.number().min(0.1).max(3600))).default(1))
    .addHelpText('after', examples('svc ps', 'svc ps --watch', 'svc ps --watch >> requests.log'))
    .action(async (options: PsOptions, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/requests' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const read = async (): Promise<readonly Request[]> => (await client.call(call, listSchema)).requests
      if (options.watch !== true) return cli.out.lines(screen(cli.out, await read()))
      await watch(cli, {
        intervalMs: options.interval * 1000,
        read,
        screen: requests => screen(cli.out, requests, cli.out.width),
        key: ({ id }) => id,
        line: ({ id, model, slot, upstream, phase, reason }) =>
          [id, model, slot ?? upstream ?? '-', phase, ...reason == null ? [] : [reason]].join(' ')
      })
    })
}

/** `widest` is for the reasons: a line that wraps cannot be drawn over. */
function screen (out: Output, requests: readonly Request[], widest = Infinity): string[] {
  if (requests.length === 0) return ['No requests are in flight.']
  const [titles, ...rows] = tableLines(columns(out, requests), requests, out.width)
  const reasons = requests.flatMap(({ id, reason }) => reason == null ? [] : [harmless(`${id}: ${reason}`)])
  return [out.paint('bold', titles!), ...rows, ...reasons.map(reason => truncate(reason, widest))]
}

function columns (out: Output, requests: readonly Request[]): ReadonlyArray<Column<Request>> {
  return [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'MODEL', cell: ({ model }) => model, flexible: true },
    ...requests.some(({ agent }) => agent != null) ? [{ title: 'AGENT', cell: ({ agent }: Request) => agent ?? '-', expendable: 5 }] : [],
    { title: 'WHERE', cell: ({ slot, upstream }) => slot ?? upstream ?? '-', expendable: 1 },
    { title: 'PHASE', cell: ({ phase }) => phase, paint: (cell, { phase }) => out.paint(phaseColour(phase), cell) },
    { title: 'AGE', cell: ({ age_ms: ms }) => age(ms) },
    { title: 'IN', cell: ({ bytes_in: size }) => bytes(size), expendable: 4 },
    { title: 'OUT', cell: ({ bytes_out: size }) => bytes(size), expendable: 3 },
    { title: 'TOKENS', cell: ({ tokens }) => String(tokens), expendable: 2 }
  ]
}

function phaseColour (phase: string): Colour {
  if (phase === 'streaming') return 'green'
  return phase === 'waiting' ? 'cyan' : 'yellow'
}

/** `0.4s`, `12s`, `3m05s`, `2h10m`. */
function age (ms: number): string {
  const s = Math.floor(ms / 1000)
  if (s < 10) return `${(ms / 1000).toFixed(1)}s`
  if (s < 60) return `${s}s`
  const two = (n: number): string => String(n).padStart(2, '0')
  return s < 3600 ? `${Math.floor(s / 60)}m${two(s % 60)}s` : `${Math.floor(s / 3600)}h${two(Math.floor(s / 60) % 60)}m`
}

function bytes (size: number): string {
  if (size < 1024) return `${size}B`
  const units = ['K', 'M', 'G']
  const unit = Math.min(units.length, Math.floor(Math.log2(size) / 10))
  const value = size / 1024 ** unit
  return `${value < 10 ? value.toFixed(1) : Math.round(value)}${units[unit - 1]}`
}
