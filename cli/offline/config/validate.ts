import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Diagnostic, Paths } from '../../../kernel/contract/index.js'
import { loadParts } from '../../../kernel/config/load-parts.js'
import { allDiagnostics, configFiles, slotFile } from '../../../kernel/config/parts.js'
import { resolvePaths } from '../../../kernel/config/paths.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../text-width.js'
import { problemLine } from './problem-line.js'

export interface FileVerdict {
  readonly file: string
  /** A file that is absent means its defaults. */
  readonly status: 'ok' | 'absent' | 'broken'
  readonly problems: ReadonlyArray<Omit<Diagnostic, 'file'>>
}

export async function validateConfig (cli: Cli, options: { readonly home?: string, readonly json?: true }): Promise<void> {
  const { out } = cli
  const paths = resolvePaths(cli.env, options.home === undefined ? {} : { home: options.home })
  const verdicts = await judgeFiles(paths)
  const broken = verdicts.filter(({ status }) => status === 'broken')
  if (options.json === true) out.json({ etc: paths.etc, ok: broken.length === 0, files: verdicts })
  else for (const verdict of verdicts) printVerdict(cli, verdict)
  if (broken.length === 0) return
  throw new CliFailure(`${broken.length === 1 ? 'one file is' : `${broken.length} files are`} not valid in ${paths.etc}`)
}

/** Every configuration file, read as the gateway reads it. */
export async function judgeFiles (paths: Paths): Promise<readonly FileVerdict[]> {
  const parts = await loadParts({ paths }, null)
  const diagnostics = allDiagnostics(parts)
  const files = new Set([
    configFiles.svc, configFiles.providers, configFiles.upstreams,
    ...Object.values(configFiles), ...[...parts.slots.keys()].map(slotFile), ...diagnostics.map(({ file }) => file)
  ])
  return await Promise.all([...files].map(async (file): Promise<FileVerdict> => {
    const problems = diagnostics.filter(diagnostic => diagnostic.file === file).map(({ file: _, ...problem }) => problem)
    if (problems.length > 0) return { file, status: 'broken', problems }
    const isThere = await access(join(paths.etc, file)).then(() => true, () => false)
    return { file, status: isThere ? 'ok' : 'absent', problems }
  }))
}

function printVerdict ({ out }: Cli, { file, status, problems }: FileVerdict): void {
  const marks = { ok: out.paint('green', '✓'), absent: out.paint('dim', '-'), broken: out.paint('red', '✗') }
  out.line(harmless(`${marks[status]} ${file}${status === 'absent' ? ': not there' : ''}`))
  out.lines(problems.map(problem => harmless(`    ${problemLine(problem)}`)))
}
