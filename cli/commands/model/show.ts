import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { sizeText } from '../../terminal/size-text.js'
import { modelRecordSchema, type ModelRecord } from '../../record/model-record.js'

export function addModelShow (model: Command, cli: Cli): void {
  model.command('show <ref>')
    .description('show everything about a model')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc model show qwen3-4b'))
    .action(async (ref: string, options: { json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: pathOf`/api/models/${ref}` }
      if (options.json === true) return cli.out.json(await client.raw(call))
      cli.out.pairs(pairsOf(await client.call(call, modelRecordSchema)))
    })
}

function pairsOf (record: ModelRecord): Array<readonly [string, string | null]> {
  const { metadata, defaults } = record
  const list = (values: readonly string[]): string | null => values.length === 0 ? null : values.join(', ')
  const number = (value: unknown): string | null => typeof value === 'number' && value > 0 ? value.toLocaleString('en-US') : null
  const context = number(metadata.context_length)
  return [
    ['id', record.id],
    ['name', record.name ?? null],
    ['type', record.type ?? null],
    ['upstream', record.upstream ?? null],
    ['path', record.path ?? null],
    ['size', record.size_bytes == null || record.size_bytes === 0 ? null : sizeText(record.size_bytes)],
    ['quant', record.quant ?? null],
    ['architecture', typeof metadata.architecture === 'string' ? metadata.architecture : null],
    ['parameters', number(metadata.parameter_count)],
    ['context', context === null ? null : `${context} tokens`],
    ['capabilities', list(record.capabilities)],
    ['backends', list(record.backends)],
    ['tags', list(record.tags)],
    ['license', record.license ?? null],
    ['projector', record.mmproj ?? null],
    ['repository', record.hf_repo ?? null],
    ['file', record.hf_filename ?? null],
    ...Object.entries(defaults).map(([key, value]) => [`default ${key}`, typeof value === 'string' ? value : JSON.stringify(value)] as const)
  ]
}
