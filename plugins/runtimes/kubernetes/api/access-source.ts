import { isSvcError, type Clock } from 'svc-gateway/plugin'
import { CredentialSource } from './credentials.js'
import type { ClusterAccess } from './kubeconfig.js'

export interface AccessSourceDeps {
  /** Reads the kubeconfig or the service account again; null where what was read stays. */
  readonly reread: (() => Promise<ClusterAccess>) | null
  readonly clock: Clock
  readonly env: NodeJS.ProcessEnv
  /** Ends a credential command that runs. */
  readonly signal: AbortSignal
}

/** The files are read no oftener, however many requests are refused. */
const LEAST_MS = 5_000

/** How a cluster is entered, which may be renewed while the gateway runs. */
export class AccessSource {
  readonly #deps: AccessSourceDeps
  #access: ClusterAccess
  #credentials: CredentialSource
  #readAt = -Infinity
  #reading: Promise<void> | null = null

  constructor (access: ClusterAccess, deps: AccessSourceDeps) {
    this.#deps = deps
    this.#access = access
    this.#credentials = this.#credentialsOf(access)
  }

  get access (): ClusterAccess { return this.#access }
  get credentials (): CredentialSource { return this.#credentials }

  /** Whether there is another way in by now than the one that the cluster refused, or that could not trust it. */
  async renewed (refused: ClusterAccess): Promise<boolean> {
    const { clock, reread } = this.#deps
    if (this.#access === refused && reread !== null && (this.#reading !== null || clock.monotonic() - this.#readAt >= LEAST_MS)) {
      this.#readAt = clock.monotonic()
      await (this.#reading ??= this.#read(reread).finally(() => { this.#reading = null }))
    }
    return this.#access !== refused
  }

  /** Another server or namespace is another place, which a running gateway does not move to. */
  async #read (reread: () => Promise<ClusterAccess>): Promise<void> {
    // a file that is being written: what the cluster said is what is told
    const next = await reread().catch(() => null)
    if (next === null || next.server !== this.#access.server || next.namespace !== this.#access.namespace) return
    if (JSON.stringify(next) === JSON.stringify(this.#access)) return
    this.#access = next
    this.#credentials = this.#credentialsOf(next)
  }

  #credentialsOf ({ credentials }: ClusterAccess): CredentialSource {
    const { clock, env, signal } = this.#deps
    return new CredentialSource(credentials, clock, env, signal)
  }
}

/** What renewed files may mend: refused credentials, none at all, a certificate that is not trusted. Pure. */
export function isAboutAccess (error: unknown): boolean {
  return isSvcError(error) && /^kubernetes\.(?:unauthorized|untrusted|credentials)$/.test(error.code)
}
