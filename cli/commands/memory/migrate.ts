import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { examples } from '../../terminal/help.js'
import { readLegacy } from './legacy-folder.js'

interface MigrateOptions {
  readonly legacyDir?: string
  readonly dataset: string
  readonly dryRun?: boolean
  readonly apply?: true
  readonly json?: true
}

const ADD_MS = 120_000

export function addMemoryMigrate (memory: Command, cli: Cli): void {
  memory.command('migrate')
    .description('import the memories of the former engine')
    .option('--legacy-dir <dir>', 'folder of the former engine; default is memory/cognee below the state folder')
    .option('-d, --dataset <name>', 'where they go', 'shared')
    .option('--dry-run', 'print what would be done, which is the default')
    .option('--apply', 'import them; running it again creates no duplicates')
    .option('--json', 'print the plan as JSON')
    .addHelpText('after', '\nReads .txt, .md, .json and .jsonl files, up to 100000; what is left out is printed. The folder itself is never touched.')
    .addHelpText('after', examples('svc memory migrate', 'svc memory migrate --apply --dataset agents'))
    .action(async (options: MigrateOptions, command: Command) => {
      const { legacyDir } = options
      const folder = legacyDir === undefined ? await usualFolder(cli, command) : resolve(cli.process.cwd(), legacyDir)
      const { notes, skipped, files } = await readLegacy(folder)
      const isApplied = options.apply === true && options.dryRun !== true
      let written = 0
      if (isApplied) {
        const client = cli.client(command)
        for (const { id, text, source } of notes) {
          const body = { text, document_id: id, dataset: options.dataset, tags: ['legacy'], metadata: { file: source } }
          await client.raw({ method: 'POST', path: '/api/memory/add', body, timeoutMs: ADD_MS })
          written++
        }
      }
      const plan = { folder, files, memories: notes.length, dataset: options.dataset, skipped, applied: isApplied, written }
      if (options.json === true) cli.out.json(plan)
      if (files === 0) throw new CliFailure(`there is nothing to import in ${folder}`)
      if (options.json === true) return
      for (const { file, reason } of skipped) cli.out.note(`${file}: ${reason}`)
      cli.out.line(isApplied
        ? `${written} memories of ${files} files are in ${options.dataset}.`
        : `${notes.length} memories in ${files} files would go to ${options.dataset}. Nothing was changed; --apply imports them.`)
    })
}

async function usualFolder (cli: Cli, command: Command): Promise<string> {
  const { homeOf } = await import('../../offline/home/home-of.js')
  return join((await homeOf(cli, command, { silent: 'home' })).state, 'memory', 'cognee')
}
