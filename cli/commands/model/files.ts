import type { Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { sizeText } from '../../terminal/size-text.js'
import type { Column } from '../../terminal/table.js'

const fileSchema = z.looseObject({ id: z.string(), size_bytes: z.number(), info: z.string().default('') })

type File = z.output<typeof fileSchema>

const repositorySchema = z.looseObject({
  repo: z.string(),
  gated: z.boolean().default(false),
  variants: z.array(fileSchema),
  metadata: z.looseObject({ license: z.string().nullish() }).default({})
})

const columns: ReadonlyArray<Column<File>> = [
  { title: 'FILE', cell: ({ id }) => id },
  { title: 'QUANT', cell: ({ info }) => info || '-', flexible: true, expendable: 1 },
  { title: 'SIZE', cell: ({ size_bytes: size }) => sizeText(size) }
]

export function addModelFiles (model: Command, cli: Cli): void {
  model.command('files <owner/name>')
    .description('list the model files in a repository of the hub')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc model files Qwen/Qwen3-4B-GGUF'))
    .action(async (repo: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { method: 'POST', path: '/api/models/inspect', body: /^https?:\/\//.test(repo) ? { hf_url: repo } : { hf_repo: repo }, timeoutMs: 60_000 } as const
      if (options.json === true) return cli.out.json(await client.raw(call))
      const { repo: id, gated, variants, metadata } = await client.call(call, repositorySchema)
      if (variants.length === 0) return cli.out.line(`${id} has no GGUF files. Search for a repository that has some: svc model search ${id.split('/').at(-1)!}`)
      cli.out.table(columns, variants)
      const pick = variants.find(({ info }) => info === 'Q4_K_M') ?? variants.find(({ info }) => !info.startsWith('projector')) ?? variants[0]!
      cli.out.note(`\nLicence: ${metadata.license ?? 'unknown'}${gated ? ', must be accepted on the hub first' : ''}`)
      cli.out.note(`Get one: svc model pull ${/^[\w-]+$/.test(pick.info) ? `${id}:${pick.info}` : `${id.split('/').at(-1)!.toLowerCase()} --repo ${id} --file ${pick.id}`}`)
    })
}
