import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../cli.js'
import { examples } from '../help.js'
import type { Colour, Output } from '../output.js'
import type { Column } from '../table.js'
import { harmless } from '../text-width.js'

const text = z.string().nullish()
const requestSchema = z.looseObject({
  id: z.string(),
  model: z.string(),
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

export function addPsCommand (program: Command, cli: Cli): void {
  program.command('ps')
    .description('list the requests in flight, and what each one waits for')
    .option('--json', 'print the answer of the API')
    .addHelpText('after', examples('svc ps', 'svc ps --json'))
    .action(async (options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/requests' }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { requests } = await client.call(call, z.looseObject({ requests: z.array(requestSchema) }))
      if (requests.length === 0) return cli.out.line('No requests are in flight.')
      cli.out.table(columns(cli.out), requests)
      for (const { id, reason } of requests) if (reason != null) cli.out.line(harmless(`${id}: ${reason}`))
    })
}

function columns (out: Output): ReadonlyArray<Column<Request>> {
  return [
    { title: 'ID', cell: ({ id }) => id },
    { title: 'MODEL', cell: ({ model }) => model, flexible: true },
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
