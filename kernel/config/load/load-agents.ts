import { join } from 'node:path'
import { AGENT_NAME_PATTERN, agentFileSchema, type AgentFile, type AgentRules, type Paths } from '../../contract/index.js'
import { located } from './load-file.js'
import { loadFolder, unlistable } from './load-folder.js'
import { agentFile, agentFolder, type ConfigParts, type Part } from '../parts/config-parts.js'
import { checkShape, type Problem } from '../check/shape-check.js'
import { readToml } from '../toml/toml-file.js'

const MISNAMED = 'has an invalid agent name: lowercase letters, digits or -, at most 32, starting with a letter or digit'

/**
 * The files of agents. They take permissions away, so what cannot be read denies: a broken file keeps its last good value, else
 * its agent may call nothing; in a folder that cannot be listed every agent may have a file.
 */
export async function loadAgents ({ etc }: Paths, previous: ConfigParts | null): Promise<Pick<ConfigParts, 'agents' | 'agentFolder'>> {
  const folder = join(etc, agentFolder)
  const loaded = await loadFolder({
    path: folder,
    shown: agentFolder,
    pattern: AGENT_NAME_PATTERN,
    misnamed: MISNAMED,
    load: name => loadAgent(folder, name, previous?.agents.get(name)?.value ?? null)
  })
  if (loaded === null) {
    return { agents: previous?.agents ?? new Map(), agentFolder: { value: false, diagnostics: unlistable(agentFolder) } }
  }
  // an agent whose name is close to that of an unusable file is denied rather than let in
  const misnamed = loaded.diagnostics.map(({ file }) => [stemOf(file).toLowerCase(), { value: null, diagnostics: [] }] as const)
  return { agents: new Map([...misnamed, ...loaded.files]), agentFolder: { value: true, diagnostics: loaded.diagnostics } }
}

export function agentRulesOf ({ agents, agentFolder: folder }: Pick<ConfigParts, 'agents' | 'agentFolder'>): AgentRules {
  return { isComplete: folder.value, files: new Map([...agents].map(([name, { value }]) => [name, value] as const)) }
}

async function loadAgent (folder: string, name: string, lastGood: AgentFile | null): Promise<Part<AgentFile | null>> {
  const file = agentFile(name)
  const read = await readToml(join(folder, `${name}.toml`), file)
  // listed and gone again: a link that leads nowhere still is the agent's file
  if (read.status === 'missing') return { value: lastGood, diagnostics: [{ file, path: '', message: 'is a broken link, or was just removed' }] }
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const { value, problems } = checkShape(agentFileSchema, read.data, { audience: 'file' })
  const all: readonly Problem[] = value === null || value.agent.name === name ? problems
    : [{ path: ['agent', 'name'], message: `must be ${name}, like the name of the file`, unknown: false }]
  return { value: all.length === 0 ? value : lastGood, diagnostics: await located(file, read.text, all) }
}

function stemOf (file: string): string {
  return file.slice(agentFolder.length + 1, -'.toml'.length)
}
