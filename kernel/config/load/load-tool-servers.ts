import { join } from 'node:path'
import {
  reservedToolServerIds, TOOL_SERVER_ID_PATTERN, toolServerSchema, type NamedToolServer, type Paths
} from '../../contract/index.js'
import type { Audience } from '../check/issue-text.js'
import { located } from './load-file.js'
import { loadFolder, unlistable } from './load-folder.js'
import { toolServerFile, type ConfigParts, type Part } from '../parts/config-parts.js'
import { isReservedVariable } from './reserved-variables.js'
import { checkShape, type Checked, type Problem } from '../check/shape-check.js'
import { readToml, type Table } from '../toml/toml-file.js'

/** Null when there is no such file any more. */
export async function loadToolServer (
  { etc }: Paths, id: string, lastGood: NamedToolServer | null
): Promise<Part<NamedToolServer | null> | null> {
  const file = toolServerFile(id)
  const read = await readToml(join(etc, file), file)
  if (read.status === 'missing') return null
  if (read.status === 'bad') return { value: lastGood, diagnostics: [read.diagnostic] }
  const { value, problems } = checkToolServer(id, read.data, 'file')
  return { value: value ?? lastGood, diagnostics: await located(file, read.text, problems) }
}

export async function loadToolServers (
  paths: Paths, previous: ConfigParts | null
): Promise<Pick<ConfigParts, 'toolServers' | 'toolServerFolder'>> {
  const shown = 'mcp-servers'
  const loaded = await loadFolder({
    path: join(paths.etc, shown),
    shown,
    pattern: TOOL_SERVER_ID_PATTERN,
    misnamed: 'has an invalid tool server name: lowercase letters, digits, - or _, at most 64, starting with a letter or digit',
    load: id => loadToolServer(paths, id, previous?.toolServers.get(id)?.value ?? null)
  })
  if (loaded === null) return { toolServers: previous?.toolServers ?? new Map(), toolServerFolder: unlistable(shown) }
  return { toolServers: loaded.files, toolServerFolder: loaded.diagnostics }
}

/** Everything wrong with a record at once, or the record with all defaults. `id` is the file's stem. Pure. */
export function checkToolServer (id: string, { id: written, ...table }: Table, audience: Audience): Checked<NamedToolServer> {
  const problems: Problem[] = []
  const problem = (path: readonly string[], message: string): void => { problems.push({ path, message, unknown: false }) }
  if (reservedToolServerIds.includes(id)) problem(['id'], `cannot be ${id}: that is a tool server of the gateway itself`)
  if (written !== undefined && written !== id) problem(['id'], `must be ${id}, like the name of the file`)
  const checked = checkShape(toolServerSchema, table, { audience, written: audience === 'client', alsoKnown: ['id'] })
  problems.push(...checked.problems)
  const { env = {}, secrets = {} } = checked.value ?? {}
  for (const [key, names] of [['env', env], ['secrets', secrets]] as const) {
    for (const name of Object.keys(names).filter(isReservedVariable)) problem([key, name], 'cannot be set: it changes which program runs')
  }
  // keys of the gateway itself are given to no other program
  for (const [name, key] of Object.entries(secrets)) if (/^SVC_/.test(key)) problem(['secrets', name], 'cannot be a key of the gateway itself')
  if (problems.length > 0 || checked.value === null) return { value: null, problems }
  return { value: { id, ...checked.value }, problems: [] }
}
