import { readFile, stat } from 'node:fs/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isAbsolute } from 'node:path'
import { messageOf, within } from 'svc-gateway/plugin'
import type { Channel } from './channel-names.js'
import { updateError } from './errors.js'
import { MOST_MANIFEST_BYTES, parseManifest, type Manifest } from './manifest.js'
import type { ReleaseTransport } from './transport.js'

/** How long a manifest may take, from the first byte to the last. */
const MANIFEST_MS = 10_000

export interface FoundRelease {
  readonly manifest: Manifest
  /** Where the manifest was read: addresses in it are relative to this one. */
  readonly manifestUrl: string
}

interface Place {
  /** SVC_RELEASES_URL; empty is none. */
  readonly override: string
  /** The folder of manifests that this installation is configured for; empty is none. */
  readonly folder: string
  readonly channel: Channel
  readonly target: string | null
}

/**
 * Where the manifest of a channel is. Of a folder it is `<channel>.json`, and of one version `<channel>-<version>.json`. The
 * variable names the manifest itself: as a file it is read as it is, over HTTP other channels and versions are asked for by
 * the query. Pure. Throws `system.update_unconfigured` where nothing is configured, and `system.update_error` for what is no
 * address.
 */
export function manifestUrl ({ override, folder, channel, target }: Place): URL {
  if (override !== '') {
    if (isAbsolute(override)) return pathToFileURL(override)
    const url = addressOf(override)
    if (url.protocol === 'file:') return url
    if (channel !== 'stable') url.searchParams.set('channel', channel)
    if (target !== null) url.searchParams.set('version', target)
    return url
  }
  if (folder === '') {
    throw updateError('system.update_unconfigured', 'this installation does not know where releases come from: set [plugins.config.updates] releases_url, or SVC_RELEASES_URL')
  }
  const base = isAbsolute(folder) ? pathToFileURL(`${folder}/`) : addressOf(folder)
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return new URL(target === null ? `${channel}.json` : `${channel}-${encodeURIComponent(target)}.json`, base)
}

/**
 * Asks the channel. Throws `system.update_error` where no answer comes, `system.update_manifest_invalid` for one that cannot
 * be used.
 */
export async function findRelease (transport: ReleaseTransport, place: Place, signal: AbortSignal): Promise<FoundRelease> {
  const url = manifestUrl(place)
  const text = await within(signal, MANIFEST_MS, async bound => {
    try {
      return url.protocol === 'file:' ? await readManifest(url) : await transport.text(url, MOST_MANIFEST_BYTES, bound)
    } catch (error) {
      signal.throwIfAborted()
      const why = bound.aborted ? `it took longer than ${MANIFEST_MS / 1000} s` : messageOf(error)
      throw updateError('system.update_error', `the channel ${place.channel} cannot be read at ${shown(url)}: ${why}`, { cause: error })
    }
  })
  return { manifest: parseManifest(text, shown(url), place.channel), manifestUrl: url.href }
}

/**
 * An address in a manifest, which may be relative; a manifest from elsewhere names no files of this machine. Throws
 * `system.update_manifest_invalid`.
 */
export function addressIn ({ manifestUrl: base }: Pick<FoundRelease, 'manifestUrl'>, address: string): URL {
  const url = URL.canParse(address, base) ? new URL(address, base) : null
  const isLocal = base.startsWith('file:')
  const allowed = isLocal ? ['file:', 'https:', 'http:'] : base.startsWith('https:') ? ['https:'] : ['https:', 'http:']
  if (url !== null && allowed.includes(url.protocol)) return url
  throw updateError('system.update_manifest_invalid', `the manifest names ${JSON.stringify(address.slice(0, 200))}, which a release cannot be read from`)
}

/** Without credentials and query. Pure. */
export function shown (url: URL): string {
  return url.protocol === 'file:' ? fileURLToPath(url) : `${url.origin}${url.pathname}`
}

async function readManifest (url: URL): Promise<string> {
  const { size } = await stat(url)
  if (size > MOST_MANIFEST_BYTES) throw new Error(`the file is longer than ${MOST_MANIFEST_BYTES} bytes`)
  return await readFile(url, 'utf8')
}

function addressOf (text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url !== null && ['https:', 'http:', 'file:'].includes(url.protocol)) return url
  throw updateError('system.update_error', 'the address of releases is invalid: it must start with https://, http:// or file://, or be the path of a file')
}
