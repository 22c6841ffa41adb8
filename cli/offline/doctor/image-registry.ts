import { fetch, type Response } from 'undici'
import { parseImageRef } from '../../../kernel/runtime/image/image-ref.js'

/** Where an image is kept, and how its registry calls it. */
export interface ImageAddress {
  readonly base: string
  readonly name: string
  /** Tag or digest. */
  readonly reference: string
}

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json', 'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json'
].join(', ')

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/

/**
 * The registry behind a reference, as Docker reads it: the first part is a host when it looks like one, else the image is on
 * Docker Hub. Registries on this machine are spoken to without TLS. Pure.
 */
export function imageAddress (image: string): ImageAddress {
  const { repository, tag, digest } = parseImageRef(image)
  const [first = '', ...rest] = repository.split('/')
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost')
  const host = isHost ? first : 'docker.io'
  const name = isHost ? rest.join('/') : repository
  const isHub = host === 'docker.io' || host === 'index.docker.io'
  return {
    base: isHub ? 'https://registry-1.docker.io' : `${LOOPBACK.test(host) ? 'http' : 'https'}://${host}`,
    name: isHub && !name.includes('/') ? `library/${name}` : name,
    reference: digest ?? tag ?? 'latest'
  }
}

/**
 * Asks for the manifest of an image anonymously: without credentials, with the token that the registry gives to anyone.
 * Gives its digest, null where the registry does not say it. Rejects with why it cannot be had.
 */
export async function manifestDigest ({ base, name, reference }: ImageAddress, signal: AbortSignal): Promise<string | null> {
  const url = `${base}/v2/${name}/manifests/${reference}`
  const head = (headers: Readonly<Record<string, string>>): Promise<Response> =>
    fetch(url, { method: 'HEAD', headers: { accept: MANIFEST_TYPES, ...headers }, signal })
  let response = await head({})
  if (response.status === 401) {
    const token = await anonymousToken(response.headers.get('www-authenticate') ?? '', base, name, signal)
    response = await head({ authorization: `Bearer ${token}` })
  }
  if (response.ok) return response.headers.get('docker-content-digest')
  throw new Error(reasonOf(response.status))
}

async function anonymousToken (challenge: string, base: string, name: string, signal: AbortSignal): Promise<string> {
  const fields = new Map([...challenge.matchAll(/\b(\w+)="([^"]*)"/g)].map(([, key, value]) => [key!, value!]))
  const realm = fields.get('realm') ?? ''
  if (!/^bearer /i.test(challenge) || !URL.canParse(realm)) throw new Error('it requires a login and gives no anonymous token')
  const url = new URL(realm)
  // who speaks TLS with us must not send us on to something that does not
  if (url.protocol !== 'https:' && !base.startsWith('http:')) throw new Error('the token address of the registry does not use TLS')
  url.searchParams.set('scope', fields.get('scope') ?? `repository:${name}:pull`)
  if (fields.has('service')) url.searchParams.set('service', fields.get('service')!)
  const response = await fetch(url, { signal })
  if (!response.ok) throw new Error(`no anonymous token: HTTP ${response.status}`)
  const answer = await response.json() as { readonly token?: unknown, readonly access_token?: unknown } | null
  const token = answer?.token ?? answer?.access_token
  if (typeof token !== 'string' || token === '') throw new Error('the registry gave no anonymous token')
  return token
}

function reasonOf (status: number): string {
  if (status === 401 || status === 403) return `it is not public (HTTP ${status})`
  if (status === 404) return 'there is no such image or tag (HTTP 404)'
  return status === 429 ? 'the registry refuses further requests for now (HTTP 429)' : `HTTP ${status}`
}
