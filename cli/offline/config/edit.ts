import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Diagnostic, Paths } from '../../../kernel/contract/index.js'
import { loadSvc } from '../../../kernel/config/load-parts.js'
import { configFiles } from '../../../kernel/config/parts.js'
import type { Cli } from '../../cli.js'
import { confirm } from '../../confirm.js'
import { CliFailure } from '../../failure.js'
import { OfflineHome } from '../../plugins/offline-home.js'
import { harmless } from '../../text-width.js'
import { openEditor } from './editor.js'
import { problemLine } from './problem-line.js'
import { SvcToml } from './svc-toml.js'
import { configTemplate } from './template.js'

/**
 * Edits a copy of svc.toml and puts it in the place of the file when it is valid. What was written is never lost: a copy
 * that cannot take the place stays, and the error says where.
 */
export async function editConfig (cli: Cli, options: { readonly home?: string }): Promise<void> {
  const file = new SvcToml(cli, options.home)
  const before = await file.read()
  const start = before ?? configTemplate()
  const folder = await mkdtemp(join(cli.env.TMPDIR ?? tmpdir(), 'svc-config-'))
  const copy = join(folder, configFiles.svc)
  let keep = false
  try {
    await writeFile(copy, start, { mode: 0o600 })
    await openEditor(cli, copy).catch(async (error: unknown) => {
      keep = await readFile(copy, 'utf8') !== start
      throw error
    })
    keep = true
    const after = await acceptable(cli, file.paths, copy)
    keep = after !== start
    if (!keep) return cli.out.line('Nothing was changed.')
    await file.replace(before, after)
    keep = false
  } catch (error) {
    if (keep) cli.out.note(`What you wrote is in ${copy}`)
    throw error
  } finally {
    if (!keep) await rm(folder, { recursive: true, force: true })
  }
  cli.out.line(`${file.path} is saved.`)
  const url = await new OfflineHome(cli, options.home).runningGateway()
  if (url !== null) cli.out.line(`A gateway runs with what was there before: svc config reload --url ${url}`)
}

/** The text once it is valid; asks for another round while there is somebody to ask. */
async function acceptable (cli: Cli, paths: Paths, copy: string): Promise<string> {
  for (;;) {
    const problems = await problemsOf(paths, copy)
    if (problems.length === 0) return await readFile(copy, 'utf8')
    cli.out.note(harmless(['svc.toml is not valid:', ...problems.map(problem => `  ${problemLine(problem)}`)].join('\n')))
    const isAnybodyThere = cli.process.stdin.isTTY === true && cli.process.stderr.isTTY === true
    if (!isAnybodyThere || !await confirm(cli, 'Edit it again?')) throw new CliFailure('svc.toml is as it was')
    await openEditor(cli, copy)
  }
}

/** The copy has the name of the file, so that it is read just like it. */
async function problemsOf (paths: Paths, copy: string): Promise<readonly Diagnostic[]> {
  return (await loadSvc({ paths: { ...paths, etc: join(copy, '..') } }, null)).diagnostics
}
