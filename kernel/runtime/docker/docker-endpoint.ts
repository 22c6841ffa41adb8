import { join } from 'node:path'

/** Where a container engine listens. */
export type DockerEndpoint =
  | { readonly kind: 'socket', readonly url: string, readonly path: string }
  | { readonly kind: 'tcp', readonly url: string, readonly host: string, readonly port: number, readonly certFolder: string | null }
  | { readonly kind: 'ssh', readonly url: string, readonly host: string, readonly port: number, readonly user: string, readonly agent: string | null }

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * Reads a `DOCKER_HOST` the way the docker command does: `unix://path`, `tcp://host:port` (TLS by
 * `DOCKER_TLS_VERIFY` or port 2376, certificates in `DOCKER_CERT_PATH`), `ssh://user@host`. Pure.
 * Returns the problem as text when it is none of these.
 */
export function parseDockerHost (text: string, env: Environment): DockerEndpoint | string {
  if (text.startsWith('/')) return { kind: 'socket', url: `unix://${text}`, path: text }
  if (text.startsWith('unix://')) {
    const path = text.slice('unix://'.length)
    return path.startsWith('/') ? { kind: 'socket', url: text, path } : `${text} is not an absolute path`
  }
  const url = asUrl(text.includes('://') ? text : `tcp://${text}`)
  if (url === null || url.hostname === '') return `${text} is not an address such as unix:///run/docker.sock or tcp://host:2375`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol === 'ssh:') {
    return {
      kind: 'ssh', url: text, host, port: portOf(url, 22), user: decodeURIComponent(url.username) || env.USER || 'root',
      agent: env.SSH_AUTH_SOCK ?? null
    }
  }
  if (!['tcp:', 'http:', 'https:'].includes(url.protocol)) return `${text} has a scheme that is not unix, tcp or ssh`
  const tls = url.protocol === 'https:' || url.port === '2376' || (env.DOCKER_TLS_VERIFY ?? '') !== ''
  const certFolder = env.DOCKER_CERT_PATH ?? join(env.HOME ?? '/', '.docker')
  return { kind: 'tcp', url: text, host, port: portOf(url, tls ? 2376 : 2375), certFolder: tls ? certFolder : null }
}

/** The host under which ports that the engine publishes are reached from here. */
export function publishedHost (endpoint: DockerEndpoint): string {
  return endpoint.kind === 'socket' ? '127.0.0.1' : endpoint.host
}

function asUrl (text: string): URL | null {
  try {
    return new URL(text)
  } catch {
    return null // the caller says what is wrong
  }
}

function portOf (url: URL, otherwise: number): number {
  return url.port === '' ? otherwise : Number(url.port)
}
