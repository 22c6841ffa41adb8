import { Agent, request, type Dispatcher } from 'undici'
import { isSvcError, messageOf, pause, within, type Clock } from 'svc-gateway/plugin'
import { kubernetesError } from '../errors.js'
import { AccessSource, isAboutAccess } from './access-source.js'
import type { Shown } from './credentials.js'
import type { ClusterAccess } from './kubeconfig.js'
import type { ApiStatus } from './objects.js'

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** From the root of the server. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  /** Of a patch. */
  readonly contentType?: string
  readonly signal?: AbortSignal
}

/** A TLS connection, for what speaks something else than HTTP over it. */
export interface ApiConnection {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly tls: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly servername?: string
    readonly rejectUnauthorized: boolean
  }
}

/** Reads again what an access came from; null where that is not done. */
type Reread = (() => Promise<ClusterAccess>) | null

/** Answers that are read whole share few connections; each stream has its own. */
interface Agents { readonly answers: Agent, readonly streams: Agent }

const ANSWER_MS = 30_000
/** Before each further try, where a connection broke. */
const TRY_AGAIN_MS = [100, 200, 400] as const
const MOST_CONNECTIONS = 32
const LONGEST_ANSWER = 64 * 1024 * 1024
/** Of a refusal, as much as is shown. */
const LONGEST_REFUSAL = 64 * 1024

/**
 * The API server of one cluster. Requests are bounded in time; streams end by their signal, or by `close`. One that is
 * refused for its credentials or its trust is sent again with renewed ones, should there be others.
 */
export class ClusterApi {
  readonly #way: AccessSource
  readonly #closing = new AbortController()
  readonly #clock: Clock
  #agents: Agents | null = null
  #certificate: Shown['certificate'] = null
  #trusted: ClusterAccess | null = null

  constructor (access: ClusterAccess, clock: Clock, env: NodeJS.ProcessEnv, reread: Reread = null) {
    this.#clock = clock
    this.#way = new AccessSource(access, { reread, clock, env, signal: this.#closing.signal })
  }

  get access (): ClusterAccess { return this.#way.access }

  get namespace (): string { return this.access.namespace }

  /** Path of a kind of object of the namespace, or of one of them. */
  path (kind: string, name?: string): string {
    return `/api/v1/namespaces/${encodeURIComponent(this.namespace)}/${kind}${name === undefined ? '' : `/${encodeURIComponent(name)}`}`
  }

  /**
   * The answer as JSON. Throws what `refusal` says, and `kubernetes.unavailable`. What can be asked twice is, where its
   * connection broke: a proxy that closes one costs no launch.
   */
  async json<T> (call: ApiCall): Promise<T> {
    return await within(call.signal ?? null, ANSWER_MS, async limit => {
      for (const againMs of call.method === 'POST' ? [] : TRY_AGAIN_MS) {
        try {
          return await this.#json<T>(call, limit)
        } catch (error) {
          if (limit.aborted || !isBroken(error)) throw error
          await pause(this.#clock, againMs, limit)
        }
      }
      return await this.#json<T>(call, limit)
    })
  }

  /** The same; null for what does not exist. */
  async find<T> (call: ApiCall): Promise<T | null> {
    try {
      return await this.json<T>(call)
    } catch (error) {
      if (isSvcError(error) && error.details.status === 404) return null
      throw error
    }
  }

  /** Bytes as they come. The signal, or `close`, ends them with an error. */
  async stream (call: ApiCall & { readonly signal: AbortSignal }): Promise<Dispatcher.ResponseData['body']> {
    const { body } = await this.#send(call, call.signal, 'streams')
    return body
  }

  /** For a WebSocket to a path. */
  async connection (path: string): Promise<ApiConnection> {
    const shown = await this.#way.credentials.show()
    return {
      url: `${this.access.server.replace(/^http/, 'ws')}${path}`,
      headers: shown.authorization === null ? {} : { authorization: shown.authorization },
      tls: this.#tls(shown)
    }
  }

  async close (): Promise<void> {
    this.#closing.abort(new Error('the runtime is closed'))
    const agents = this.#agents
    this.#agents = null
    await Promise.all([agents?.answers.destroy(), agents?.streams.destroy()])
  }

  async #json<T> (call: ApiCall, limit: AbortSignal): Promise<T> {
    const { body } = await this.#send(call, limit, 'answers')
    try {
      return JSON.parse(await readText(body, LONGEST_ANSWER)) as T
    } catch (error) {
      throw this.#failed(error, call)
    }
  }

  async #send (call: ApiCall, signal: AbortSignal, way: keyof Agents): Promise<Dispatcher.ResponseData> {
    const { access } = this
    try {
      return await this.#sendOnce(call, signal, way)
    } catch (error) {
      if (!isAboutAccess(error) || !await this.#way.renewed(access)) throw error
      return await this.#sendOnce(call, signal, way)
    }
  }

  async #sendOnce (call: ApiCall, signal: AbortSignal, way: keyof Agents): Promise<Dispatcher.ResponseData> {
    const { credentials } = this.#way
    const shown = await credentials.show()
    const first = await this.#ask(call, signal, way, shown)
    if (first.statusCode < 400) return first
    if (first.statusCode !== 401 || !credentials.renews) throw await this.#refusal(first, call)
    // a token that has ended: shown anew once
    await first.body.dump()
    credentials.forget(shown)
    const second = await this.#ask(call, signal, way, await credentials.show())
    if (second.statusCode < 400) return second
    throw await this.#refusal(second, call)
  }

  async #ask (
    { method = 'GET', path, query, body, contentType = 'application/json', ...call }: ApiCall, signal: AbortSignal, way: keyof Agents,
    shown: Shown
  ): Promise<Dispatcher.ResponseData> {
    const headers: Record<string, string> = { accept: 'application/json, */*' }
    if (shown.authorization !== null) headers.authorization = shown.authorization
    if (body !== undefined) headers['content-type'] = contentType
    try {
      return await request(`${this.access.server}${path}${query === undefined ? '' : `?${new URLSearchParams(query)}`}`, {
        method,
        headers,
        // with its length: the API server takes an unframed body of a DELETE for the next request
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.any([signal, this.#closing.signal]),
        dispatcher: this.#agentsFor(shown)[way]
      })
    } catch (error) {
      throw this.#failed(error, { path, ...call })
    }
  }

  #agentsFor (shown: Shown): Agents {
    if (this.#agents !== null && this.#certificate === shown.certificate && this.#trusted === this.access) return this.#agents
    const former = this.#agents
    this.#trusted = this.access
    this.#certificate = shown.certificate
    const agent = (connections: number | null): Agent =>
      new Agent({ connect: this.#tls(shown), headersTimeout: ANSWER_MS, bodyTimeout: 0, keepAliveTimeout: 30_000, connections })
    this.#agents = { answers: agent(MOST_CONNECTIONS), streams: agent(null) }
    // what runs over them is ended by the server when its certificate has
    void former?.answers.close()
    void former?.streams.close()
    return this.#agents
  }

  #tls ({ certificate }: Shown): ApiConnection['tls'] {
    const { ca, serverName, verifies } = this.access
    return {
      ...(ca === null ? {} : { ca }),
      ...(certificate === null ? {} : certificatePair(certificate)),
      ...(serverName === null ? {} : { servername: serverName }),
      rejectUnauthorized: verifies
    }
  }

  async #refusal (answer: Dispatcher.ResponseData, call: ApiCall): Promise<Error> {
    const text = await readText(answer.body, LONGEST_REFUSAL).catch(() => '')
    return refusal(answer.statusCode, statusOf(text), call, this.namespace)
  }

  #failed (error: unknown, { path, signal }: Pick<ApiCall, 'path' | 'signal'>): unknown {
    if (signal?.aborted === true) return signal.reason
    if (isSvcError(error)) return error
    const { server } = this.access
    const code = (error as { readonly code?: string }).code ?? ''
    if (/^(?:UNABLE_TO|DEPTH_ZERO|SELF_SIGNED|CERT_|ERR_TLS_CERT)/.test(code)) {
      return kubernetesError('kubernetes.untrusted',
        `the certificate of ${server} cannot be verified (${code}); ${nextStep(code)}`, { cause: error })
    }
    if (/^(?:ERR_SSL|ERR_OSSL)/.test(code) && /alert/i.test(messageOf(error))) {
      return kubernetesError('kubernetes.unauthorized', `${server} does not accept the certificate of the kubeconfig (${code}); renew it`, { cause: error })
    }
    return kubernetesError('kubernetes.unavailable', `the API server ${server} does not answer ${path}: ${code === '' ? messageOf(error) : code}; check that it runs, and that this machine reaches it`, { cause: error })
  }
}

/** What a pod names and the cluster looks up before it takes it. */
const ABSENT = /(?:RuntimeClass|serviceaccount) "[^"]*" not found|no PriorityClass with name/

/** What an answer of 400 and above means. Pure. */
export function refusal (status: number, { message = '', reason = '' }: ApiStatus, { method = 'GET', path }: ApiCall, namespace: string): Error {
  const said = message === '' ? `HTTP ${status}` : message.slice(0, 1000)
  const options = { details: { status, reason } }
  if (status === 401) {
    return kubernetesError('kubernetes.unauthorized', `the cluster does not accept the credentials (${said}); renew those of the kubeconfig`, options)
  }
  if (status === 403) {
    if (/namespace .* (?:is being terminated|because it is being terminated)/.test(said)) return kubernetesError('kubernetes.namespace_missing', `namespace '${namespace}' is being deleted: ${said}; create it again once it is gone, or choose another (namespace in [runtime.kubernetes])`, options)
    if (/exceeded quota/.test(said)) return kubernetesError('kubernetes.no_capacity', `the quota of namespace '${namespace}' leaves no room: ${said}; unload a slot that uses it (\`svc slot unload\`), ask for less in \`resources\`, or raise it`, options)
    if (ABSENT.test(said)) return kubernetesError('kubernetes.object_missing', `the cluster refused the pod: ${said}; create what it names, or change runtime_class in [runtime.kubernetes] or in the runtime_options of the slot if that names it`, options)
    if (/violates PodSecurity/.test(said)) return kubernetesError('kubernetes.refused', `${said}; set restricted = true in [runtime.kubernetes] or in the runtime_options of the slot, or label the namespace for another level`, options)
    if (!isRule(said)) return kubernetesError('kubernetes.forbidden', `${said}; \`svc cluster manifest\` prints the manifest that grants it`, options)
  }
  if (status === 404 && /^namespaces /.test(said)) {
    return kubernetesError('kubernetes.namespace_missing', `namespace '${namespace}' does not exist; \`svc cluster manifest\` prints the manifest for it`, options)
  }
  if (/failed calling webhook/.test(said)) return kubernetesError('kubernetes.unavailable', `an admission webhook of the cluster does not answer: ${said}; it is retried; check that the service behind it is running`, options)
  if (status === 429 || status >= 500) return kubernetesError('kubernetes.unavailable', `the API server has a problem: ${said}; it is retried; check its state with \`kubectl get --raw /readyz\``, options)
  if (isRule(said)) return kubernetesError('kubernetes.refused', `the cluster refused ${method} ${path}: ${said}; change what it names in \`resources\` or runtime_options of the slot, or the rule of the cluster`, options)
  return kubernetesError('kubernetes.refused', `the API server refused ${method} ${path}: ${said}; change what it names in [runtime.kubernetes], or in \`resources\` or runtime_options of the slot`, options)
}

/** A rule of the cluster, such as its pod security, a limit range or an admission policy, and no want of a right. Pure. */
function isRule (said: string): boolean {
  return /^admission webhook "[^"]*" denied the request/.test(said) || (/^\w+ "[^"]*" is forbidden/.test(said) && !/ cannot \w+ /.test(said))
}

function statusOf (text: string): ApiStatus {
  try {
    const value = JSON.parse(text) as ApiStatus | null
    return typeof value?.message === 'string' ? value : { message: text }
  } catch {
    return { message: text.trim() }
  }
}

function certificatePair ({ cert, key }: NonNullable<Shown['certificate']>): { readonly cert: string, readonly key: string } {
  return { cert, key }
}

async function readText (body: AsyncIterable<Buffer>, most: number): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > most) throw new Error(`the answer is longer than ${most} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The connection ended before the answer did. Pure. */
function isBroken (error: unknown): boolean {
  const { code = '' } = (error as { readonly cause?: { readonly code?: string } }).cause ?? {}
  return /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(code)
}

/** A clock that is set right, or a renewed certificate, mends it without anything being changed here. Pure. */
export function isOutOfTime (code: string): boolean {
  return code === 'CERT_NOT_YET_VALID' || code === 'CERT_HAS_EXPIRED'
}

/** Pure. */
export function nextStep (code: string): string {
  return isOutOfTime(code)
    ? 'correct the clock of this machine, or renew the certificate if it has expired'
    : 'check certificate-authority and tls-server-name in the kubeconfig'
}
