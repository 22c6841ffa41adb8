import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { examples } from '../../terminal/help.js'
import { modelRecordSchema } from '../../record/model-record.js'

interface RegisterOptions {
  readonly path: string
  readonly name?: string
  readonly license?: string
}

export function addModelRegister (model: Command, cli: Cli): void {
  model.command('register <id>')
    .description('register an existing model file')
    .requiredOption('-p, --path <path>', 'the file, or the first of a split model')
    .option('--name <name>', 'name for people; default is what the file says')
    .option('--license <license>', 'licence; default is what the file says')
    .addHelpText('after', examples('svc model register mine --path /models/mine-Q4_K_M.gguf --license apache-2.0'))
    .action(async (id: string, { path, name, license }: RegisterOptions, command: Command) => {
      const body = { id, path: resolve(cli.process.cwd(), path), name, license }
      const record = await cli.client(command).call({ method: 'POST', path: '/api/models', body, timeoutMs: 60_000 }, modelRecordSchema)
      cli.out.line(`Model ${record.id} is registered: ${[record.type, record.quant, record.path].filter(Boolean).join(', ')}`)
    })
}
