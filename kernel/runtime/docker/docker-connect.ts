import { setMaxListeners } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { join } from 'node:path'
import { inspect } from 'node:util'
import type Docker from 'dockerode'
import { svcError, type Clock } from '../../contract/index.js'
import { publishedHost, type DockerEndpoint } from './docker-endpoint.js'
import { engineError, statusOf } from './docker-errors.js'
import { abortable, linkedAbort } from '../../async/waiting.js'

/** Longest wait for an answer of the engine that needs no work of the containers. */
export const ANSWER_MS = 30_000

export type EngineKind = 'docker' | 'podman'

/** What differs between engines, as far as this driver cares. */
export interface EngineFacts {
  readonly kind: EngineKind
  readonly version: string
  readonly rootless: boolean
  readonly selinux: boolean
}

/** A container engine that has answered. */
export class DockerEngine {
  readonly docker: Docker
  readonly facts: EngineFacts
  readonly endpoint: DockerEndpoint
  /** Host under which published ports are reached from here. */
  readonly host: string
  readonly #clock: Clock
  readonly #agent: HttpAgent
  readonly #closing = new AbortController()

  constructor (docker: Docker, facts: EngineFacts, endpoint: DockerEndpoint, clock: Clock, agent: HttpAgent) {
    this.docker = docker
    this.facts = facts
    this.endpoint = endpoint
    this.host = publishedHost(endpoint)
    this.#clock = clock
    this.#agent = agent
    setMaxListeners(0, this.#closing.signal) // one for each call under way
  }

  get closing (): AbortSignal {
    return this.#closing.signal
  }

  /**
   * Runs one call with a deadline, so that an engine that hangs never hangs its caller. Rejects with the reason of
   * `signal` when that aborts, with a `SvcError` for everything else.
   */
  async call<T> (
    doing: string, work: (signal: AbortSignal) => Promise<T>, options: { signal?: AbortSignal, withinMs?: number } = {}
  ): Promise<T> {
    const { signal, withinMs = ANSWER_MS } = options
    signal?.throwIfAborted()
    const signals = signal === undefined ? [this.closing] : [this.closing, signal]
    return ask(this.#clock, this.endpoint.url, doing, withinMs, work, signals).catch((error: unknown) => {
      signal?.throwIfAborted()
      throw error
    })
  }

  close (): void {
    this.#closing.abort(svcError('runtime.unavailable', 'the container runtime was closed'))
    this.#agent.destroy()
  }
}

/**
 * Asks the engine who it is. dockerode is loaded here and not before: a gateway that needs no container engine
 * never pays for it.
 */
export async function connectDocker (
  endpoint: DockerEndpoint, options: { readonly clock: Clock, readonly withinMs: number }
): Promise<DockerEngine> {
  const { clock, withinMs } = options
  const { default: DockerClient } = await import('dockerode')
  const secure = endpoint.kind === 'tcp' && endpoint.certFolder !== null
  // a connection for each call: one kept open may have died with the engine's last life
  const agent = briefly(secure ? new HttpsAgent({ keepAlive: false }) : new HttpAgent({ keepAlive: false }))
  try {
    const docker = new DockerClient({ ...await clientOptions(endpoint), agent } as Docker.DockerOptions)
    // dockerode's types leave out that these take options
    const client = docker as unknown as Record<'ping' | 'info', (options: object) => Promise<InfoAnswer>>
    await ask(clock, endpoint.url, 'connecting', withinMs, inner => client.ping({ abortSignal: inner }).catch(isThere), [])
    // it is there; Podman asks the package manager what it consists of, each time that it is asked for this or its version
    const info = await ask(clock, endpoint.url, 'connecting', ANSWER_MS, inner => client.info({ abortSignal: inner }), [])
    if (typeof info.ServerVersion !== 'string') throw svcError('runtime.failed', `${endpoint.url} answers, but is not a container engine`)
    return new DockerEngine(docker, factsOf(info), endpoint, clock, agent)
  } catch (error) {
    agent.destroy()
    throw engineError('connecting', endpoint.url, error)
  }
}

/**
 * docker-modem formats the options of each call for its debug log, even with the log off: for an agent that is every socket and
 * stream that is open, which takes longer than the call.
 */
function briefly<T extends HttpAgent> (agent: T): T {
  return Object.defineProperty(agent, inspect.custom, { value: () => 'Agent' })
}

/** A proxy in front of an engine may refuse this question and answer the others. */
function isThere (error: unknown): void {
  if (statusOf(error) === null) throw error
}

export interface InfoAnswer {
  readonly ServerVersion?: string
  /** Of Podman alone. */
  readonly BuildahVersion?: string
  readonly SecurityOptions?: readonly string[] | null
  readonly Rootless?: boolean
}

export function factsOf (info: InfoAnswer): EngineFacts {
  const options = info.SecurityOptions ?? []
  const has = (name: string): boolean => options.some(option => option === `name=${name}` || option.startsWith(`name=${name},`))
  return {
    kind: info.BuildahVersion === undefined ? 'docker' : 'podman',
    version: info.ServerVersion ?? 'unknown',
    rootless: info.Rootless === true || has('rootless'),
    selinux: has('selinux')
  }
}

/** Every field is set, also to undefined: docker-modem fills what is left out from the process environment. */
async function clientOptions (endpoint: DockerEndpoint): Promise<Record<string, unknown>> {
  const none = {
    host: undefined, port: undefined, protocol: 'http', socketPath: undefined, pathPrefix: '/', username: undefined, timeout: undefined,
    ca: undefined, cert: undefined, key: undefined, sshOptions: {}
  }
  switch (endpoint.kind) {
    case 'socket': return { ...none, socketPath: endpoint.path }
    case 'ssh': return {
      ...none, protocol: 'ssh', host: endpoint.host, port: endpoint.port, username: endpoint.user,
      sshOptions: { agent: endpoint.agent ?? undefined }
    }
    case 'tcp': {
      const { host, port, certFolder } = endpoint
      if (certFolder === null) return { ...none, host, port }
      const [ca, cert, key] = await Promise.all(['ca', 'cert', 'key'].map(name => readFile(join(certFolder, `${name}.pem`))))
      return { ...none, protocol: 'https', host, port, ca, cert, key }
    }
  }
}

async function ask<T> (
  clock: Clock, endpoint: string, doing: string, withinMs: number,
  work: (signal: AbortSignal) => Promise<T>, signals: readonly AbortSignal[]
): Promise<T> {
  const { controller, dispose } = linkedAbort(...signals)
  const timer = clock.setTimer(withinMs, () => controller.abort(svcError('runtime.unavailable',
    `the container engine at ${endpoint} did not answer within ${withinMs / 1000} s while ${doing}; check that it is healthy`, { details: { endpoint } })))
  try {
    return await abortable(work(controller.signal), controller.signal)
  } catch (error) {
    throw engineError(doing, endpoint, controller.signal.aborted ? controller.signal.reason : error)
  } finally {
    timer.cancel()
    dispose()
  }
}
