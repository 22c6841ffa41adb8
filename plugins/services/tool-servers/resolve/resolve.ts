import { isIP } from 'node:net'
import { mcpError } from '../errors.js'
import type { ResolvedManifest } from '../ref.js'
import { noRepository, parseSpec, unsupported } from '../spec.js'
import { fetchFailed, fetchManifest, notPublic, type FetchDeps } from './manifest-fetch.js'
import { ofSpec, readManifest } from './manifest.js'
import { isPublicAddress, isPrivateName } from './public-address.js'
import { hostOf } from './public-addresses.js'

const MAX_URL = 2_048

/** What an MCP server answers a GET with that is no session of its own. */
const serverAnswers: readonly number[] = [400, 401, 403, 405, 406]

/**
 * What an address or spec stands for. Packages and images are read from their names alone; a URL is asked once: for a
 * manifest, or whether it is a server itself.
 */
export async function resolveServer (text: string, deps: FetchDeps, signal: AbortSignal): Promise<ResolvedManifest> {
  const given = text.trim()
  if (given === '') throw mcpError('mcp.url_required', 'give the address or spec of a tool server', { param: 'url' })
  if (given.length > MAX_URL) throw mcpError('mcp.url_too_long', `an address or spec has at most ${MAX_URL} characters`, { param: 'url' })
  if (/[\s\u0000-\u001f]/.test(given)) throw mcpError('mcp.url_invalid', 'the address or spec has blanks or control characters in it', { param: 'url' })
  const parsed = parseSpec(given)
  if (parsed === null) {
    const looksLikeUrl = /^https?:/.test(given)
    throw looksLikeUrl ? mcpError('mcp.url_invalid', 'the address is not a valid URL', { param: 'url' }) : unsupported(given)
  }
  if (parsed.kind === 'git') throw noRepository(given)
  if (parsed.kind !== 'http') return ofSpec(parsed)
  const url = new URL(parsed.target)
  if (url.username !== '' || url.password !== '') {
    throw mcpError('mcp.url_invalid', 'the address contains a password; bind it as a secret instead', { param: 'url' })
  }
  const { status, type, text: body } = await fetchManifest(url, deps, signal)
  if (serverAnswers.includes(status) || (status === 200 && type.startsWith('text/event-stream'))) return within(ofSpec(parsed), deps)
  if (status !== 200) {
    const isElsewhere = status >= 300 && status < 400
    throw fetchFailed(url, new Error(`it answers HTTP ${status}${isElsewhere ? ', a redirect, which is not followed' : ''}`))
  }
  const manifest = readManifest(jsonOf(body))
  if (manifest === null) throw fetchFailed(url, new Error('its answer is not a manifest of a tool server'))
  if (parseSpec(manifest.spec)?.kind === 'git') throw noRepository(manifest.spec)
  return within({ ...manifest, source_kind: 'manifest', source_url: url.href }, deps)
}

/** Who publishes an address or a manifest may name a server of the public internet, and none in the network of the gateway. */
function within (manifest: ResolvedManifest, { trusted }: FetchDeps): ResolvedManifest {
  const parsed = parseSpec(manifest.spec)
  if (parsed?.kind !== 'http') return manifest
  const url = new URL(parsed.target)
  if (trusted.includes(url.host)) return manifest
  const host = hostOf(url)
  if (isPrivateName(host) || (isIP(host) !== 0 && !isPublicAddress(host))) throw notPublic(url)
  return { ...manifest, network: 'public' }
}

function jsonOf (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
