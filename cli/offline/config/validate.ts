import { access } from 'node:fs/promises'
import { join } from 'node:path'
import type { Finding, Paths } from '../../../kernel/contract/index.js'
import { agentFile, configFiles, slotFile, toolServerFile } from '../../../kernel/config/parts/config-parts.js'
import type { Cli } from '../../cli.js'
import { CliFailure } from '../../failure.js'
import { harmless } from '../../terminal/text-width.js'
import { checkHome, type HomeCheck } from './check-home.js'
import { findingLine } from './problem-line.js'

export interface FileVerdict {
  readonly file: string
  /** A file that is absent means its defaults; one that is suspect has warnings only. */
  readonly status: 'ok' | 'absent' | 'suspect' | 'broken'
  readonly problems: ReadonlyArray<Omit<Finding, 'file'>>
}

export async function validateConfig (cli: Cli, paths: Paths, options: { readonly json?: true }): Promise<void> {
  const { out } = cli
  const check = await checkHome(paths, cli.env)
  const verdicts = await judgeFiles(paths, check)
  const broken = verdicts.filter(({ status }) => status === 'broken')
  if (options.json === true) out.json({ etc: paths.etc, ok: broken.length === 0, complete: check.complete, files: verdicts })
  else for (const verdict of verdicts) printVerdict(cli, verdict)
  if (broken.length === 0) return
  throw new CliFailure(`${broken.length === 1 ? 'one file is' : `${broken.length} files are`} not valid in ${paths.etc}`, {
    hints: check.complete ? [] : ['References between files are checked once svc.toml is valid.']
  })
}

/** Every configuration file, as the gateway judges it. */
export async function judgeFiles (paths: Paths, { parts, findings }: HomeCheck): Promise<readonly FileVerdict[]> {
  const files = new Set([
    configFiles.svc, configFiles.providers, configFiles.upstreams, ...Object.values(configFiles),
    ...[...parts.slots.keys()].map(slotFile), ...[...parts.agents.keys()].map(agentFile),
    ...parts.owned.keys(), ...[...parts.toolServers.keys()].map(toolServerFile), ...findings.map(({ file }) => file)
  ])
  return await Promise.all([...files].map(async (file): Promise<FileVerdict> => {
    const problems = findings.filter(finding => finding.file === file).map(({ file: _, ...problem }) => problem)
    if (problems.some(({ severity }) => severity === 'error')) return { file, status: 'broken', problems }
    if (problems.length > 0) return { file, status: 'suspect', problems }
    const isThere = await access(join(paths.etc, file)).then(() => true, () => false)
    return { file, status: isThere ? 'ok' : 'absent', problems }
  }))
}

function printVerdict ({ out }: Cli, { file, status, problems }: FileVerdict): void {
  const marks = {
    ok: out.paint('green', '✓'), absent: out.paint('dim', '-'), suspect: out.paint('yellow', '!'), broken: out.paint('red', '✗')
  }
  out.line(harmless(`${marks[status]} ${file}${status === 'absent' ? ': absent' : ''}`))
  for (const problem of problems) out.line(harmless(`    ${findingLine(problem)}`))
}
