import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { numberOf } from '../../option-value.js'
import type { Column } from '../../terminal/table.js'

const rowSchema = z.looseObject({
  id: z.string(),
  downloads: z.number().default(0),
  likes: z.number().default(0),
  gated: z.boolean().default(false),
  pipeline_tag: z.string().nullish(),
  last_modified: z.string().nullish()
})

type Row = z.output<typeof rowSchema>

const foundSchema = z.looseObject({ results: z.array(rowSchema), problem: z.string().nullish() })

const columns: ReadonlyArray<Column<Row>> = [
  { title: 'REPOSITORY', cell: ({ id }) => id },
  { title: 'TASK', cell: ({ pipeline_tag: task }) => task ?? '-', flexible: true, expendable: 3 },
  { title: 'DOWNLOADS', cell: ({ downloads }) => downloads.toLocaleString('en-US') },
  { title: 'LIKES', cell: ({ likes }) => likes.toLocaleString('en-US'), expendable: 2 },
  { title: 'UPDATED', cell: ({ last_modified: at }) => at?.slice(0, 10) ?? '-', expendable: 1 },
  { title: 'ACCESS', cell: ({ gated }) => gated ? 'gated' : 'open' }
]

interface SearchOptions { readonly type: string, readonly limit: number, readonly json?: true }

export function addModelSearch (model: Command, cli: Cli): void {
  model.command('search <words...>')
    .description('search the model hub for repositories, most downloaded first')
    .option('--type <type>', 'gguf, or a task of the hub such as text-generation', 'gguf')
    .option('--limit <n>', 'number of results, at most 20', numberOf(z.int().min(1).max(20)), 20)
    .option('--json', 'print the API response')
    .addHelpText('after', '\nGated repositories need their licence accepted on the hub, and HF_TOKEN in api.env.')
    .addHelpText('after', examples('svc model search qwen3 4b', 'svc model search --type text-to-speech english'))
    .action(async (words: readonly string[], { type, limit, json }: SearchOptions, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/hf/search', query: { q: words.join(' '), type, limit } }
      const answer = await client.raw(call)
      const { results, problem } = foundSchema.parse(answer)
      if (json === true) cli.out.json(answer)
      if (problem != null) throw new CliFailure(`the search failed: ${problem}`, { hints: ['`svc model catalog` lists models without asking the hub.'] })
      if (json === true) return
      if (results.length === 0) return cli.out.line(`Nothing on the hub matches "${words.join(' ')}"${type === 'gguf' ? ' in GGUF' : ` of type ${type}`}.`)
      cli.out.table(columns, results)
      const { id } = results[0]!
      cli.out.note(`\nSee its files: svc model files ${id}\nGet one of them: svc model pull ${id}:Q4_K_M`)
    })
}
