import { access } from 'node:fs/promises'
import { messageOf, svcError, type Clock, type Logger, type SvcError } from '../contract/index.js'
import type { ContainerRuntime } from '../contract/provider/engine-runtime.js'
import { connectDocker, type DockerEngine } from './docker/docker-connect.js'
import { createDockerRuntime } from './docker/docker-runtime.js'
import { readEngineHosts } from './engine-hosts.js'
import { openProcessRuntime } from './process/process-runtime.js'
import { runtimeCandidates, type Candidate, type DriverSetting } from './runtime-candidates.js'
import { pause } from '../async/waiting.js'

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
  /** Ends the wait for an engine host that is silent. */
  readonly signal?: AbortSignal
  /** How long an engine host that the last run used is waited for. Default a minute. */
  readonly waitMs?: number
  /** It is to stand beside the default: what the last run used is the default's to look for. */
  readonly isBeside?: boolean
}

/** Why a candidate is not taken. `absent`: nothing is there. `silent`: something is, or was, and may answer later. */
export interface Passed { readonly kind: 'absent' | 'silent' | 'unusable', readonly why: string }

const WAIT_MS = 60_000
const ASK_AGAIN_MS = 500

/**
 * Opens what runs engines: the first container engine that answers, else child processes when the setting is
 * `auto`. `info.reason` says what was taken and why nothing before it was. The engine host of the last run is waited for
 * and not replaced while it is silent: its engines may run. Throws `runtime.unavailable` when that one, or the driver that
 * was asked for, does not answer.
 */
export async function selectRuntime (options: SelectRuntimeOptions): Promise<ContainerRuntime> {
  const { settings: { driver, connect_timeout_s: patienceS }, clock, log } = options
  const uid = options.uid === undefined ? process.getuid?.() ?? null : options.uid
  const { used } = await readEngineHosts(options.stateDir)
  const passed: string[] = []
  for (const candidate of runtimeCandidates(driver, options.env, uid)) {
    const isUsed = options.isBeside !== true && used !== null && used.endpoint === urlOf(candidate)
    const outcome = await (isUsed ? awaitCandidate(options, candidate) : tryCandidate(candidate, clock, patienceS))
    if ('why' in outcome) {
      passed.push(`${candidate.source} ${outcome.why}`)
      if (isUsed && outcome.kind !== 'absent') throw goneSilent(candidate, outcome.why)
      if (isUsed) log.warn({ endpoint: used.endpoint }, `${candidate.source} ran the engines of this home but ${outcome.why}`)
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

/** As `tryCandidate`, until it answers or `waitMs` are over. */
async function awaitCandidate (options: SelectRuntimeOptions, candidate: Candidate): Promise<DockerEngine | Passed> {
  const { settings: { connect_timeout_s: patienceS }, clock, log, signal, waitMs = WAIT_MS } = options
  const deadline = clock.monotonic() + waitMs
  for (let isTold = false; ; isTold = true) {
    const outcome = await tryCandidate(candidate, clock, patienceS)
    if (!('why' in outcome) || outcome.kind === 'unusable' || clock.monotonic() >= deadline) return outcome
    if (!isTold) {
      const upTo = `up to ${Math.round(waitMs / 1000)} s`
      log.warn({}, `${candidate.source} ran the engines of this home but ${outcome.why}; waiting for it, ${upTo}`)
    }
    await pause(clock, ASK_AGAIN_MS, signal)
    signal?.throwIfAborted()
  }
}

/** The engine, or why it is not taken. A socket that does not exist costs one look at the file system. */
export async function tryCandidate (candidate: Candidate, clock: Clock, patienceS: number): Promise<DockerEngine | Passed> {
  const { endpoint, accepts } = candidate
  if (typeof endpoint === 'string') return { kind: 'unusable', why: `is not usable: ${endpoint}` }
  if (endpoint.kind === 'socket') {
    const problem = await access(endpoint.path).then(() => null, (error: NodeJS.ErrnoException) => error.code ?? error.message)
    if (problem === 'ENOENT') return { kind: 'absent', why: `does not exist (${endpoint.path})` }
    if (problem !== null) return { kind: 'unusable', why: `cannot be reached (${endpoint.path}: ${problem})` }
  }
  let engine: DockerEngine
  try {
    engine = await connectDocker(endpoint, { clock, withinMs: patienceS * 1000 })
  } catch (error) {
    return { kind: codeOf(error) === 'EACCES' ? 'unusable' : 'silent', why: whyNot(error, endpoint.url) }
  }
  if (accepts.includes(engine.facts.kind)) return engine
  engine.close()
  return { kind: 'unusable', why: `is ${engine.facts.kind} (${endpoint.url})` }
}

function codeOf (error: unknown): string | undefined {
  return ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code
}

function urlOf ({ endpoint }: Candidate): string | null {
  return typeof endpoint === 'string' ? null : endpoint.url
}

function whyNot (error: unknown, url: string): string {
  const code = codeOf(error)
  switch (code) {
    case 'EACCES': return `may not be used (${url}: permission denied; add the gateway's user to the group of the socket)`
    case 'ECONNREFUSED': return `refuses connections (${url})`
    case undefined: {
      // the limit is not `connect_timeout_s` for all that is asked
      const [late] = /did not answer within [\d.]+ s/.exec(messageOf(error)) ?? []
      return late === undefined ? `failed (${messageOf(error)})` : `${late} (${url})`
    }
    default: return `cannot be reached (${url}: ${code})`
  }
}

function goneSilent ({ source, endpoint }: Candidate, why: string): SvcError {
  return svcError('runtime.unavailable',
    `${source} ran the engines of this home but ${why}; start it, or set [runtime] driver to process to run engines without it`,
    { details: { endpoint: typeof endpoint === 'string' ? endpoint : endpoint.url } })
}

function unavailable (driver: 'docker' | 'podman', passed: readonly string[]): SvcError {
  const name = driver === 'docker' ? 'Docker' : 'Podman'
  const start = driver === 'docker' ? 'systemctl start docker' : 'systemctl start podman.socket (with --user when rootless)'
  return svcError('runtime.unavailable',
    `[runtime] driver is ${driver} and no ${name} answers: ${passed.join(', ')}; start it (${start}), set DOCKER_HOST, or set driver to auto`,
    { details: { driver, tried: passed } })
}
