import { access } from 'node:fs/promises'
import { messageOf, svcError, type Clock, type Logger, type SvcError } from '../contract/index.js'
import type { ContainerRuntime } from './container-runtime.js'
import { connectDocker, type DockerEngine } from './docker-connect.js'
import { createDockerRuntime } from './docker-runtime.js'
import { openProcessRuntime } from './process-runtime.js'
import { runtimeCandidates, type Candidate, type DriverSetting } from './runtime-candidates.js'

export interface SelectRuntimeOptions {
  /** `[runtime]`: what to run engines with, and how long each candidate may take to answer. */
  readonly settings: { readonly driver: DriverSetting, readonly connect_timeout_s: number }
  /** The gateway's state folder, for the process driver. */
  readonly stateDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
  /** Of the gateway's user, whose own sockets are looked at; null where there is no such thing. Default: the real one. */
  readonly uid?: number | null
}

/**
 * Opens what runs engines: the first container engine that answers, else child processes when the setting is
 * `auto`. `info.reason` says what was taken and why nothing before it was. Throws `runtime.unavailable` when the
 * driver that was asked for does not answer.
 */
export async function selectRuntime (options: SelectRuntimeOptions): Promise<ContainerRuntime> {
  const { settings: { driver, connect_timeout_s: patienceS }, clock, log } = options
  const uid = options.uid === undefined ? process.getuid?.() ?? null : options.uid
  const passed: string[] = []
  for (const candidate of runtimeCandidates(driver, options.env, uid)) {
    const outcome = await tryCandidate(candidate, clock, patienceS)
    if (typeof outcome === 'string') {
      passed.push(`${candidate.source} ${outcome}`)
      continue
    }
    const { facts, endpoint } = outcome
    const name = facts.kind === 'podman' ? 'Podman' : 'Docker'
    const before = passed.length === 0 ? '' : `; passed over: ${passed.join(', ')}`
    const reason = `${name} ${facts.version} answers at ${endpoint.url} (${candidate.source})${before}`
    return createDockerRuntime({ engine: outcome, clock, log, reason })
  }
  if (driver === 'docker' || driver === 'podman') throw unavailable(driver, passed)
  const reason = driver === 'process' ? '[runtime] driver is process'
    : `no container engine answers, so engines run as child processes: ${passed.join(', ')}`
  return openProcessRuntime({ stateDir: options.stateDir, env: options.env, clock, log, reason })
}

/** The engine, or why it is not taken. A socket that does not exist costs one look at the file system. */
export async function tryCandidate (candidate: Candidate, clock: Clock, patienceS: number): Promise<DockerEngine | string> {
  const { endpoint, accepts } = candidate
  if (typeof endpoint === 'string') return `is not usable: ${endpoint}`
  if (endpoint.kind === 'socket') {
    const problem = await access(endpoint.path).then(() => null, (error: NodeJS.ErrnoException) => error.code ?? error.message)
    if (problem === 'ENOENT') return `does not exist (${endpoint.path})`
    if (problem !== null) return `cannot be reached (${endpoint.path}: ${problem})`
  }
  let engine: DockerEngine
  try {
    engine = await connectDocker(endpoint, { clock, withinMs: patienceS * 1000 })
  } catch (error) {
    return whyNot(error, endpoint.url, patienceS)
  }
  if (accepts.includes(engine.facts.kind)) return engine
  engine.close()
  return `is ${engine.facts.kind} (${endpoint.url})`
}

function whyNot (error: unknown, url: string, patienceS: number): string {
  const code = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code
  switch (code) {
    case 'EACCES': return `may not be used (${url}: permission denied; add the gateway's user to the group of the socket)`
    case 'ECONNREFUSED': return `has nothing behind it (${url}: connection refused)`
    case undefined:
      return /gave no answer/.test(messageOf(error)) ? `gave no answer within ${patienceS} s (${url})` : `failed (${messageOf(error)})`
    default: return `cannot be reached (${url}: ${code})`
  }
}

function unavailable (driver: 'docker' | 'podman', passed: readonly string[]): SvcError {
  const name = driver === 'docker' ? 'Docker' : 'Podman'
  const start = driver === 'docker' ? 'systemctl start docker' : 'systemctl start podman.socket (with --user when rootless)'
  return svcError('runtime.unavailable',
    `[runtime] driver is ${driver} and no ${name} answers: ${passed.join(', ')}; start it (${start}), set DOCKER_HOST, or set driver to auto`,
    { details: { driver, tried: passed } })
}
