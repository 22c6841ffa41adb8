import { readFile } from 'node:fs/promises'
import { messageOf, type Clock } from 'svc-gateway/plugin'
import { kubernetesError } from '../errors.js'
import { execFailed, runExec, type ExecCommand } from './exec-command.js'

export type Credentials =
  | { readonly kind: 'none' }
  | { readonly kind: 'certificate', readonly cert: string, readonly key: string }
  | { readonly kind: 'token', readonly token: string }
  | { readonly kind: 'token-file', readonly path: string }
  | { readonly kind: 'basic', readonly username: string, readonly password: string }
  | { readonly kind: 'exec', readonly exec: ExecCommand }

/** What a request shows. */
export interface Shown {
  readonly authorization: string | null
  readonly certificate: { readonly cert: string, readonly key: string } | null
}

/** Tokens of service accounts are renewed long before they end. */
const REREAD_MS = 10_000
/** Credentials of a command are asked for anew this long before they end. */
const EARLY_MS = 30_000
/** The command runs no oftener, whatever its clock or the cluster says of what it gave. */
const LEAST_MS = 5_000
const TOKEN = /^[\x21-\x7e]+$/

interface Kept { readonly shown: Shown, readonly since: number, readonly until: number }

/** Gives what each request shows, and reads it anew when it is due. */
export class CredentialSource {
  readonly #credentials: Credentials
  readonly #clock: Clock
  readonly #env: NodeJS.ProcessEnv
  readonly #signal: AbortSignal
  #kept: Kept | null = null
  #asking: Promise<Shown> | null = null

  /** @param signal ends a command that runs */
  constructor (credentials: Credentials, clock: Clock, env: NodeJS.ProcessEnv, signal: AbortSignal) {
    this.#credentials = credentials
    this.#clock = clock
    this.#env = env
    this.#signal = signal
  }

  /** Whether another try may show something else, after the cluster refused. */
  get renews (): boolean {
    return this.#credentials.kind === 'exec' || this.#credentials.kind === 'token-file'
  }

  /** Throws `kubernetes.credentials`. */
  async show (): Promise<Shown> {
    const kept = this.#kept
    if (kept !== null && this.#clock.monotonic() < kept.until) return kept.shown
    return await (this.#asking ??= this.#ask().finally(() => { this.#asking = null }))
  }

  /** The cluster refused this: what is shown next is asked for anew, unless it was a moment ago. */
  forget (refused: Shown): void {
    const kept = this.#kept
    if (kept === null || kept.shown !== refused) return
    if (this.#credentials.kind === 'exec' && this.#clock.monotonic() - kept.since < LEAST_MS) return
    this.#kept = null
  }

  async #ask (): Promise<Shown> {
    const credentials = this.#credentials
    const keep = (shown: Shown, ms: number): Shown => {
      const since = this.#clock.monotonic()
      this.#kept = { shown, since, until: since + ms }
      return shown
    }
    switch (credentials.kind) {
      case 'none': return keep({ authorization: null, certificate: null }, Infinity)
      case 'certificate': return keep({ authorization: null, certificate: credentials }, Infinity)
      case 'token': return keep(bearer(credentials.token, 'the token of the kubeconfig'), Infinity)
      case 'basic': {
        const pair = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
        return keep({ authorization: `Basic ${pair}`, certificate: null }, Infinity)
      }
      case 'token-file': {
        const token = await readFile(credentials.path, 'utf8').catch((error: unknown) => {
          throw kubernetesError('kubernetes.credentials', `the token of the cluster cannot be read: ${messageOf(error)}`, { cause: error })
        })
        return keep(bearer(token.trim(), credentials.path), REREAD_MS)
      }
      case 'exec': {
        const { exec } = credentials
        const status = await runExec(exec, this.#env, this.#signal)
        const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: until } = status
        const certificate = cert != null && key != null ? { cert, key } : null
        if (token == null && certificate === null) throw execFailed(exec, 'it printed neither a token nor a certificate')
        // a time of another clock: where that is wrong the cluster refuses, and it is asked for anew
        const left = until == null ? Infinity : Date.parse(until) - this.#clock.now() - EARLY_MS
        const shown = { authorization: token == null ? null : bearer(token, `what '${exec.command}' printed`).authorization, certificate }
        return keep(shown, Number.isNaN(left) ? LEAST_MS : Math.max(LEAST_MS, left))
      }
    }
  }
}

/** @param source of the token, for people */
function bearer (token: string, source: string): Shown {
  if (!TOKEN.test(token)) throw kubernetesError('kubernetes.credentials', `${source} is not a token: ${token === '' ? 'it is empty' : 'it has invalid characters'}`)
  return { authorization: `Bearer ${token}`, certificate: null }
}
