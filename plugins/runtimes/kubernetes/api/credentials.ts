import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { messageOf, type Clock } from 'svc-gateway/plugin'
import { z } from 'zod'
import { kubernetesError } from '../errors.js'

export interface ExecCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly apiVersion: string
  readonly installHint: string
}

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
const EXEC_MS = 60_000
const LONGEST_OUTPUT = 1024 * 1024
/** Credentials of a command are asked for anew this long before they end. */
const EARLY_MS = 30_000

const execSchema = z.looseObject({
  status: z.looseObject({
    token: z.string().nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish()
  })
})

/** Gives what each request shows, and reads it anew when it is due. */
export class CredentialSource {
  readonly #credentials: Credentials
  readonly #clock: Clock
  readonly #env: NodeJS.ProcessEnv
  readonly #signal: AbortSignal
  #kept: { readonly shown: Shown, readonly until: number } | null = null
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

  /** The cluster refused what was shown. */
  forget (): void {
    this.#kept = null
  }

  async #ask (): Promise<Shown> {
    const credentials = this.#credentials
    const keep = (shown: Shown, ms: number): Shown => {
      this.#kept = { shown, until: this.#clock.monotonic() + ms }
      return shown
    }
    switch (credentials.kind) {
      case 'none': return keep({ authorization: null, certificate: null }, Infinity)
      case 'certificate': return keep({ authorization: null, certificate: credentials }, Infinity)
      case 'token': return keep(bearer(credentials.token), Infinity)
      case 'basic': {
        const pair = Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')
        return keep({ authorization: `Basic ${pair}`, certificate: null }, Infinity)
      }
      case 'token-file': {
        const token = await readFile(credentials.path, 'utf8').catch((error: unknown) => {
          throw kubernetesError('kubernetes.credentials', `the token of the cluster cannot be read: ${messageOf(error)}`, { cause: error })
        })
        return keep(bearer(token.trim()), REREAD_MS)
      }
      case 'exec': {
        const { status } = await this.#run(credentials.exec)
        const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: until } = status
        const certificate = cert != null && key != null ? { cert, key } : null
        if (token == null && certificate === null) throw failed(credentials.exec, 'it printed neither a token nor a certificate')
        const left = until == null ? Infinity : Date.parse(until) - this.#clock.now() - EARLY_MS
        const shown = { authorization: token == null ? null : bearer(token).authorization, certificate }
        return keep(shown, Number.isNaN(left) ? 0 : Math.max(0, left))
      }
    }
  }

  async #run (exec: ExecCommand): Promise<z.output<typeof execSchema>> {
    const { command, args, env, apiVersion } = exec
    const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec: { interactive: false } })
    const output = await new Promise<string>((resolve, reject) => {
      const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(EXEC_MS)])
      const child = spawn(command, args, {
        env: { ...this.#env, ...env, KUBERNETES_EXEC_INFO: info }, stdio: ['ignore', 'pipe', 'pipe'], signal, killSignal: 'SIGKILL'
      })
      const chunks: Buffer[] = []
      let [size, said] = [0, '']
      child.stdout.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size > LONGEST_OUTPUT) child.kill('SIGKILL')
        else chunks.push(chunk)
      })
      child.stderr.on('data', (chunk: Buffer) => { said = (said + chunk.toString('utf8')).slice(-400) })
      child.once('error', (error: NodeJS.ErrnoException) => reject(failed(exec, error.code === 'ENOENT' ? `there is no such program${exec.installHint === '' ? '' : `: ${exec.installHint}`}` : messageOf(error))))
      child.once('close', code => {
        if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'))
        else reject(failed(exec, `it ended with ${code ?? 'a signal'}${said === '' ? '' : `: ${said.trim().split('\n').at(-1)}`}`))
      })
    })
    try {
      return execSchema.parse(JSON.parse(output))
    } catch {
      // what it printed may hold a secret
      throw failed(exec, 'it printed no ExecCredential')
    }
  }
}

function bearer (token: string): Shown {
  return { authorization: `Bearer ${token}`, certificate: null }
}

function failed ({ command }: ExecCommand, why: string): Error {
  return kubernetesError('kubernetes.credentials', `the credential command '${command}' of the kubeconfig gave nothing: ${why}`)
}
