import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Finding, Paths } from '../../../kernel/contract/index.js'
import type { Cli } from '../../cli.js'
import { confirm } from '../../terminal/confirm.js'
import { CliFailure } from '../../failure.js'
import { requireHome } from '../home/home-of.js'
import { addressOf } from '../home/running-gateway.js'
import { printReload, refusedLines, reloadGateway } from '../../reload-plan.js'
import { harmless } from '../../terminal/text-width.js'
import { checkHome } from './check-home.js'
import { ConfigText } from './config-text.js'
import { editableFile, type EditableFile } from './editable.js'
import { openEditor } from './editor.js'
import { findingLine } from './problem-line.js'
import { configTemplate } from './template.js'

/**
 * Edits a copy of a file and puts it in the place of the file when it is valid. What was written is never lost: a copy
 * that cannot take the place stays, and the error says where.
 */
export async function editConfig (cli: Cli, paths: Paths, word: string): Promise<void> {
  await requireHome(paths)
  const editable = editableFile(paths, word)
  const file = new ConfigText(paths, editable.file)
  const before = await file.read()
  const start = before ?? configTemplate(editable)
  const folder = await mkdtemp(join(cli.env.TMPDIR ?? tmpdir(), 'svc-config-'))
  const copy = join(folder, editable.file)
  let keep = false
  try {
    await mkdir(dirname(copy), { recursive: true })
    await writeFile(copy, start, { mode: 0o600 })
    await openEditor(cli, copy).catch(async (error: unknown) => {
      keep = await readFile(copy, 'utf8') !== start
      throw error
    })
    keep = await readFile(copy, 'utf8') !== start
    if (!keep) return cli.out.line('Nothing was changed.')
    await file.replace(before, await acceptable(cli, file.paths, editable, folder))
    keep = false
  } catch (error) {
    if (keep) cli.out.note(`Your edit is in ${copy}`)
    throw error
  } finally {
    if (!keep) await rm(folder, { recursive: true, force: true })
  }
  cli.out.line(`${file.path} is saved.`)
  await handOver(cli, paths, editable.file)
}

/** The text once it is valid; asks for another round while there is a user to ask. */
async function acceptable (cli: Cli, paths: Paths, editable: EditableFile, folder: string): Promise<string> {
  const { file } = editable
  const copy = join(folder, file)
  const old = (await checkHome(paths, cli.env)).findings
  for (;;) {
    const found = (await checkHome(paths, cli.env, (parts, options) => editable.lay(parts, folder, options))).findings
    const problems = found.filter(finding => isInTheWay(finding, file, old))
    const others = found.filter(finding => finding.file === file && !problems.includes(finding))
    if (problems.length === 0) {
      if (others.length > 0) cli.out.note(listOf('Worth a look:', file, others))
      return await readFile(copy, 'utf8')
    }
    cli.out.note(listOf(`${file} is not valid:`, file, problems))
    const isAnybodyThere = cli.process.stdin.isTTY === true && cli.process.stderr.isTTY === true
    if (!isAnybodyThere || !await confirm(cli, 'Edit it again?')) throw new CliFailure(`${file} is unchanged`)
    await openEditor(cli, copy)
  }
}

/** What the file itself has wrong, and what it makes wrong anywhere. What was wrong between the files before does not count. */
function isInTheWay (finding: Finding, file: string, old: readonly Finding[]): boolean {
  if (finding.severity === 'warning') return false
  const isOfFile = finding.code === 'validation.invalid' || finding.code === 'config.parse_error'
  if (isOfFile) return finding.file === file
  return !old.some(known => known.file === finding.file && known.path === finding.path && known.message === finding.message)
}

function listOf (title: string, file: string, findings: readonly Finding[]): string {
  const lines = findings.map(finding => `  ${finding.file === file ? '' : `${finding.file}: `}${findingLine(finding)}`)
  return harmless([title, ...lines].join('\n'))
}

/** Has the gateway that runs on the home take the file, and says whether it did. */
async function handOver (cli: Cli, paths: Paths, file: string): Promise<void> {
  const url = await addressOf(paths)
  if (url === null) return
  const reloaded = await reloadGateway(cli.clientAt(url)).catch((error: unknown) => {
    throw new CliFailure(`the gateway at ${url} did not accept it`, { cause: error, hints: [`svc config reload --url ${url}`] })
  })
  printReload(cli.out, reloaded)
  const { diagnostics } = reloaded._svc
  const refused = refusedLines(diagnostics.filter(problem => problem.file === file))
  if (refused.length > 0) throw new CliFailure(`the gateway at ${url} did not accept it`, { hints: refused })
}
