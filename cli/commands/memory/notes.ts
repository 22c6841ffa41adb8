import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { numberOf } from '../../option-value.js'
import { harmless } from '../../terminal/text-width.js'

const banksSchema = z.looseObject({
  banks: z.array(z.looseObject({ bank_id: z.string(), fact_count: z.number().nullish(), last_write_at: z.string().nullish() }))
})
const noteSchema = z.looseObject({
  id: z.string(),
  text: z.string(),
  timestamp: z.string(),
  dataset: z.string(),
  source: z.string().nullable(),
  score: z.number().nullable()
})
type Note = z.output<typeof noteSchema>
const itemsSchema = z.looseObject({ items: z.array(noteSchema), next_cursor: z.string().nullish() })
const foundSchema = z.looseObject({ items: z.array(noteSchema), ran_on: z.array(z.string()).default([]) })
const addedSchema = z.looseObject({ id: z.string(), known: z.boolean().default(false) })
const deletedSchema = z.looseObject({ deleted: z.number() })

const limit = numberOf(z.int().min(1).max(200))
/** A model may rank or read what comes. */
const SLOW_MS = 120_000

export function addMemoryBanks (memory: Command, cli: Cli): void {
  memory.command('banks')
    .description('list the banks, which hold the memories of the datasets')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory banks'))
    .action(async (options: { json?: true }, command: Command) => {
      const answer = await cli.client(command).raw({ path: '/api/memory/banks', timeoutMs: SLOW_MS })
      if (options.json === true) return cli.out.json(answer)
      cli.out.table([
        { title: 'BANK', cell: ({ bank_id: id }) => harmless(id), flexible: true },
        { title: 'MEMORIES', cell: ({ fact_count: count }) => String(count ?? 0) },
        { title: 'LAST WRITE', cell: ({ last_write_at: at }) => at ?? '-', expendable: 1 }
      ], banksSchema.parse(answer).banks)
    })
}

interface AddOptions {
  readonly dataset?: string
  readonly tag?: readonly string[]
  readonly id?: string
  readonly json?: true
}

interface SearchOptions {
  readonly dataset?: string
  readonly limit: number
  readonly tag?: readonly string[]
  readonly before?: string
  readonly after?: string
  readonly json?: true
}

interface ListOptions {
  readonly dataset?: string
  readonly limit: number
  readonly cursor?: string
  readonly json?: true
}

interface DeleteOptions {
  readonly dataset?: string
  readonly yes?: true
  readonly json?: true
}

export function addMemoryNotes (memory: Command, cli: Cli): void {
  memory.command('add <text>')
    .description('remember a text')
    .addOption(datasetOption())
    .option('-t, --tag <tag...>', 'tags to find it by')
    .option('--id <id>', 'id; a memory with the same id is replaced')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory add "The printer is on the second floor." --tag office', 'svc memory add "Deploys happen on Tuesdays" --dataset project:web'))
    .action(async (text: string, { dataset, tag, id, json }: AddOptions, command: Command) => {
      const body = { text, dataset, tags: tag, document_id: id }
      const answer = await cli.client(command).raw({ method: 'POST', path: '/api/memory/add', body, timeoutMs: SLOW_MS })
      if (json === true) return cli.out.json(answer)
      const added = addedSchema.parse(answer)
      cli.out.line(added.known ? `Already known, as ${added.id}.` : `Remembered as ${added.id}.`)
    })
  memory.command('search <query>')
    .description('search memories; prints text, score and source')
    .addOption(datasetOption())
    .addOption(new Option('-n, --limit <count>', 'maximum number of results').argParser(limit).default(10))
    .option('-t, --tag <tag...>', 'only memories with one of these tags')
    .option('--after <time>', 'only newer memories, ISO 8601')
    .option('--before <time>', 'only older memories, ISO 8601')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory search "where is the printer"', 'svc memory search deploys --dataset project:web --after 2026-01-01'))
    .action(async (query: string, { dataset, limit, tag, before, after, json }: SearchOptions, command: Command) => {
      const body = { query, limit, dataset, tags: tag, before, after }
      const answer = await cli.client(command).raw({ method: 'POST', path: '/api/memory/search', body, timeoutMs: SLOW_MS })
      if (json === true) return cli.out.json(answer)
      const { items, ran_on: ranOn } = foundSchema.parse(answer)
      if (items.length === 0) cli.out.note('Nothing is found.')
      showNotes(cli, items)
      if (ranOn.join() === 'text') cli.out.note('Searched by words alone, not by meaning: `svc memory status` tells why.')
    })
  memory.command('list')
    .description('list memories')
    .addOption(datasetOption())
    .addOption(new Option('-n, --limit <count>', 'maximum number of results').argParser(limit).default(50))
    .option('--cursor <cursor>', 'cursor that the previous page printed')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc memory list', 'svc memory list --dataset agents -n 200'))
    .action(async ({ dataset, limit, cursor, json }: ListOptions, command: Command) => {
      const query = { limit, ...dataset === undefined ? {} : { dataset }, ...cursor === undefined ? {} : { cursor } }
      const answer = await cli.client(command).raw({ path: '/api/memory/list', query, timeoutMs: SLOW_MS })
      if (json === true) return cli.out.json(answer)
      const { items, next_cursor: next } = itemsSchema.parse(answer)
      if (items.length === 0) cli.out.note('There are no memories here.')
      showNotes(cli, items)
      if (next != null) cli.out.note(`There are more: --cursor ${next}`)
    })
  memory.command('delete <ids...>')
    .alias('rm')
    .description('delete memories for good, by their ids')
    .addOption(datasetOption())
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print the API response')
    .addHelpText('after', '\nExits with 1 if none of them exists.')
    .addHelpText('after', examples('svc memory delete 3caefa3a-163d-4d16-a3fd-ad4f8cd00dc4'))
    .action(async (ids: readonly string[], { dataset, yes, json }: DeleteOptions, command: Command) => {
      const what = ids.length === 1 ? 'this memory' : `these ${ids.length} memories`
      if (yes !== true && !await confirm(cli, `Delete ${what} for good?`)) throw new CliFailure('nothing was changed')
      const answer = await cli.client(command).raw({ method: 'POST', path: '/api/memory/delete', body: { ids, dataset }, timeoutMs: SLOW_MS })
      const { deleted } = deletedSchema.parse(answer)
      if (json === true) cli.out.json(answer)
      if (deleted === 0) throw new CliFailure('no such memory: `svc memory list` shows their ids')
      if (json !== true) cli.out.line(deleted === 1 ? 'One memory is deleted.' : `${deleted} memories are deleted.`)
    })
}

function datasetOption (): Option {
  return new Option('-d, --dataset <name>', 'shared (default), agents or project:<id>')
}

function showNotes (cli: Cli, notes: readonly Note[]): void {
  for (const { id, text, timestamp, dataset, source, score } of notes) {
    cli.out.line(harmless(text))
    const facts = [score === null ? null : score.toFixed(2), dataset, source, timestamp === '' ? null : timestamp, id]
    const folded = cli.out.folded(facts.filter(fact => fact !== null).map(harmless).join('  '), 2)
    cli.out.lines(folded.map(line => cli.out.paint('dim', `  ${line.trim()}`)))
  }
}
