import { access, constants } from 'node:fs/promises'
import { svcError, type EngineProvider, type ProcessCandidate } from '../../../contract/index.js'
import type { ProcessForm } from '../../../contract/provider/engine-runtime.js'
import { findProgram } from '../../../runtime/programs/program-search.js'

/**
 * The first candidate whose program and files are on this host, and its own environment. Throws `runtime.unavailable`
 * when none is; `who` begins its message.
 */
export async function chooseCandidate (
  who: string, provider: EngineProvider, candidates: readonly ProcessCandidate[], path: string, bindHost: string
): Promise<{ readonly form: ProcessForm, readonly env: Readonly<Record<string, string>> }> {
  for (const candidate of candidates) {
    const command = await findProgram(candidate.command, path)
    if (command === null || !await allReadable(candidate.requiresFiles ?? [])) continue
    const { args, workingDir = null, label, env = {} } = candidate
    return { form: { kind: 'process', command, args, workingDir, label, bindHost }, env }
  }
  const tried = [...new Set(candidates.map(candidate => candidate.label))]
  const commands = [...new Set(candidates.flatMap(({ install }) => install === undefined ? [] : [`run \`${install}\``]))]
  throw svcError('runtime.unavailable', tried.length === 0
    ? `${who} needs a container engine: provider ${provider.name} cannot run without one; start Docker or Podman`
    : `${who} cannot run: no container engine is in use, and ${absent(tried)}; ${[...commands, 'start Docker or Podman', `install ${tried[0]!}`].join(', or ')}`,
  { details: { provider: provider.name, tried }, heals: false })
}

function absent ([first, ...more]: readonly string[]): string {
  return more.length === 0 ? `${first!} is not installed` : `neither ${first!} nor ${more.join(' nor ')} is installed`
}

async function allReadable (files: readonly string[]): Promise<boolean> {
  for (const file of files) {
    if (!await access(file, constants.R_OK).then(() => true, () => false)) return false
  }
  return true
}
