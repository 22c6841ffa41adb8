import { isSvcError, reservedToolServerIds, type ToolServerInput } from 'svc-gateway/plugin'
import type { ToolServerService } from '../../services/tool-servers/ref.js'
import { mcpError } from './errors.js'
import type { InstallBody } from './schemas.js'

export interface Installation {
  readonly id: string
  readonly row: ToolServerInput
  readonly env_missing: readonly string[]
}

/** What a manifest tells of besides the keys of a file. */
const told = ['tools', 'env_required', 'source_kind']

/** A record that is to be, from an address, a spec or a manifest. Throws as `POST /api/mcp/install` says. */
export async function planInstallation (
  body: InstallBody, servers: Pick<ToolServerService, 'resolve'>, installedAt: string, signal: AbortSignal
): Promise<Installation> {
  const { url, spec, manifest, id: wanted, args, env, secrets, enabled } = body
  const given = url ?? spec
  if (manifest !== undefined && given !== undefined) {
    throw mcpError('mcp.body_invalid', 'give either an address or a manifest', { param: 'manifest' })
  }
  const found: Table = manifest === undefined ? { ...await servers.resolve(given ?? '', signal) } : ofManifest(manifest)
  const { id: own, ...rest } = found
  const id = wanted ?? own
  if (typeof id !== 'string') throw mcpError('mcp.manifest_invalid', 'the manifest has no id', { param: 'manifest' })
  if (reservedToolServerIds.includes(id)) {
    throw mcpError('mcp.id_reserved', `the id ${id} belongs to the gateway; install the server under another one`, { param: 'id', details: { id } })
  }
  const needed = Array.isArray(found.env_required) ? found.env_required.filter(name => typeof name === 'string') : []
  const all: Table = {
    ...rest, args: args ?? rest.args, env: env ?? rest.env, secrets: secrets ?? rest.secrets, enabled: enabled ?? rest.enabled,
    installed_at: installedAt
  }
  const row = Object.fromEntries(Object.entries(all)
    .filter(([key, value]) => value !== undefined && (!told.includes(key) || isTable(value))))
  const has = { ...isTable(row.env) ? row.env : {}, ...isTable(row.secrets) ? row.secrets : {} }
  return { id, row, env_missing: needed.filter(name => !(name in has)) }
}

/** A record that does not fit its schema came in a manifest: what is wrong stays, the code is the manifest's. */
export function asManifestFailure (error: unknown): never {
  if (!isSvcError(error) || !error.code.startsWith('validation.')) throw error
  throw mcpError('mcp.manifest_invalid', error.message, { details: error.details, cause: error })
}

function ofManifest (manifest: unknown): Table {
  if (!isTable(manifest)) throw mcpError('mcp.manifest_invalid', 'the manifest is not an object', { param: 'manifest' })
  return manifest
}

type Table = Readonly<Record<string, unknown>>

function isTable (value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
