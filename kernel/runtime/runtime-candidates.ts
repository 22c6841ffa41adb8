import { join } from 'node:path'
import type { SvcConfig } from '../contract/index.js'
import type { EngineKind } from './docker/docker-connect.js'
import { parseDockerHost, type DockerEndpoint, type Environment } from './docker/docker-endpoint.js'

export type DriverSetting = SvcConfig['runtime']['driver']

/** A place where a container engine may listen. */
export interface Candidate {
  /** For people: `DOCKER_HOST`, `the Docker socket`. */
  readonly source: string
  /** The problem as text when the address is invalid. */
  readonly endpoint: DockerEndpoint | string
  readonly accepts: readonly EngineKind[]
}

/**
 * Where to look, in order: `DOCKER_HOST`, Docker's sockets, the rootless and the rootful Podman socket.
 * Pure. Empty for the process driver.
 */
export function runtimeCandidates (driver: DriverSetting, env: Environment, uid: number | null): readonly Candidate[] {
  if (driver === 'process') return []
  const accepts: readonly EngineKind[] = driver === 'auto' ? ['docker', 'podman'] : [driver]
  const own = env.XDG_RUNTIME_DIR ?? (uid === null || uid === 0 ? null : `/run/user/${uid}`)
  const socket = (source: string, path: string): Candidate => ({ source, endpoint: { kind: 'socket', url: `unix://${path}`, path }, accepts })
  const found: Candidate[] = []
  const host = env.DOCKER_HOST ?? ''
  if (host !== '') found.push({ source: 'DOCKER_HOST', endpoint: parseDockerHost(host, env), accepts })
  if (driver !== 'podman') {
    found.push(socket('the Docker socket', '/var/run/docker.sock'))
    if (own !== null) found.push(socket('the rootless Docker socket', join(own, 'docker.sock')))
    if (env.HOME !== undefined) found.push(socket('the Docker Desktop socket', join(env.HOME, '.docker/run/docker.sock')))
  }
  if (driver !== 'docker') {
    if (own !== null) found.push(socket('the rootless Podman socket', join(own, 'podman/podman.sock')))
    found.push(socket('the rootful Podman socket', '/run/podman/podman.sock'))
  }
  return found
}
