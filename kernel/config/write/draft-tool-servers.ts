import { svcError, toolServerIdSchema, type ConfigDraft, type Logger, type NamedToolServer, type SvcError } from '../../contract/index.js'
import type { DraftFiles } from './draft-files.js'
import { checkToolServer } from '../load/load-tool-servers.js'
import { toolServerFile } from '../parts/config-parts.js'
import { checkShape, invalid } from '../check/shape-check.js'
import { mergeTables } from './svc-writer.js'
import type { Table } from '../toml/toml-file.js'

/** What `env` holds is often a secret anyway. */
const MODE = 0o600

/** The files of `mcp-servers/` on a draft. */
export class DraftToolServers implements Pick<ConfigDraft['toolServers'], 'create' | 'patch' | 'delete'> {
  readonly #files: DraftFiles
  readonly #log: Logger

  constructor (files: DraftFiles, log: Logger) {
    this.#files = files
    this.#log = log
  }

  async create (id: string, row: Table): Promise<NamedToolServer> {
    requireId(id)
    const table = mergeTables({}, row)
    const server = checked(id, table)
    const { stringifyToml } = await import('../toml/toml-patch.js')
    // the file and not the snapshot: one that is broken is there too
    if (!await this.#files.create(toolServerFile(id), stringifyToml(table), MODE)) {
      throw svcError('mcp.already_installed', `tool server '${id}' is already installed; uninstall it, or install this one under another id`, { details: { id } })
    }
    return server
  }

  async patch (id: string, patch: Table): Promise<NamedToolServer> {
    requireId(id)
    const file = await this.#files.toml(toolServerFile(id))
    if (file === null) throw toolServerNotFound(id)
    const table = mergeTables(file.data, patch)
    const server = checked(id, table)
    const { patchToml } = await import('../toml/toml-patch.js')
    const text = patchToml(file.text, table, reason => {
      this.#log.warn({ file: toolServerFile(id), reason }, 'the file was rewritten; its comments are lost')
    })
    this.#files.put(toolServerFile(id), text, MODE)
    return server
  }

  async delete (id: string): Promise<void> {
    requireId(id)
    if (!await this.#files.remove(toolServerFile(id))) throw toolServerNotFound(id)
  }
}

/** The id becomes a file name, so nothing else may get through. */
function requireId (id: string): void {
  const { problems } = checkShape(toolServerIdSchema, id, { audience: 'client', userPath: () => ['id'] })
  if (problems.length > 0) throw invalid('tool server', problems)
}

function checked (id: string, table: Table): NamedToolServer {
  const { value, problems } = checkToolServer(id, table, 'client')
  if (value === null) throw invalid(`tool server ${id}`, problems)
  return value
}

function toolServerNotFound (id: string): SvcError {
  return svcError('mcp.not_found', `no such tool server: '${id}'; see GET /api/mcp/servers`, { details: { id } })
}
