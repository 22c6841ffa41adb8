import { spawn } from 'node:child_process'
import { messageOf } from 'svc-gateway/plugin'
import { z } from 'zod'
import { kubernetesError } from '../errors.js'

/** A program that prints credentials. It is started by its words, never by a shell. */
export interface ExecCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly apiVersion: string
  readonly installHint: string
  /** What it is told of the cluster; null: nothing. */
  readonly cluster: Readonly<Record<string, unknown>> | null
}

const outputSchema = z.looseObject({
  status: z.looseObject({
    token: z.string().nullish(),
    clientCertificateData: z.string().nullish(),
    clientKeyData: z.string().nullish(),
    expirationTimestamp: z.string().nullish()
  })
})
export type ExecStatus = z.output<typeof outputSchema>['status']

export const EXEC_MS = 60_000
const LONGEST_OUTPUT = 1024 * 1024
const LONGEST_SAID = 400

/** What it printed. Throws `kubernetes.credentials` with the last that it said on stderr, or the signal's reason. */
export async function runExec (
  exec: ExecCommand, env: NodeJS.ProcessEnv, signal: AbortSignal, limitMs = EXEC_MS
): Promise<ExecStatus> {
  const output = await printed(exec, env, signal, limitMs)
  try {
    return outputSchema.parse(JSON.parse(output)).status
  } catch {
    // what it printed may hold a secret
    throw execFailed(exec, 'it did not print an ExecCredential')
  }
}

export function execFailed ({ command }: ExecCommand, why: string): Error {
  return kubernetesError('kubernetes.credentials', `the credential command '${command}' of the kubeconfig failed: ${why}`)
}

async function printed (exec: ExecCommand, env: NodeJS.ProcessEnv, signal: AbortSignal, limitMs: number): Promise<string> {
  const { command, args, apiVersion, cluster, installHint } = exec
  signal.throwIfAborted()
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false, ...cluster === null ? {} : { cluster } } }
  // a group of its own: what it started ends with it, and holds no pipe open
  const child = spawn(command, args, {
    env: { ...env, ...exec.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) }, stdio: ['ignore', 'pipe', 'pipe'], detached: true
  })
  const chunks: Buffer[] = []
  let [size, said] = [0, Buffer.alloc(0)]
  const spoke = (): string => {
    const line = said.toString('utf8').trim().split('\n').at(-1)!
    return line === '' ? '' : `: ${line}`
  }
  return await new Promise<string>((resolve, reject) => {
    const give = (up: unknown): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      } catch {
        // it has ended
      }
      child.stdout.destroy()
      child.stderr.destroy()
      reject(up as Error)
    }
    const onAbort = (): void => give(signal.reason)
    const timer = setTimeout(() => give(execFailed(exec, `it took longer than ${limitMs / 1000} s${spoke()}`)), limitMs)
    signal.addEventListener('abort', onAbort, { once: true })
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > LONGEST_OUTPUT) give(execFailed(exec, `it printed more than ${LONGEST_OUTPUT} bytes`))
      else chunks.push(chunk)
    })
    child.stderr.on('data', (chunk: Buffer) => { said = Buffer.concat([said, chunk]).subarray(-LONGEST_SAID) })
    child.once('error', (error: NodeJS.ErrnoException) => {
      const hint = installHint === '' ? '' : `: ${installHint.slice(0, LONGEST_SAID)}`
      give(execFailed(exec, error.code === 'ENOENT' ? `no such program${hint}` : messageOf(error)))
    })
    child.once('close', code => {
      if (code !== 0) return give(execFailed(exec, `it ended with ${code ?? 'a signal'}${spoke()}`))
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      resolve(Buffer.concat(chunks).toString('utf8'))
    })
  })
}
