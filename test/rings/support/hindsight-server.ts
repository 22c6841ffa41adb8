import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { root } from '../../repository.js'

/** A Hindsight server with a database and models of its own, all of it on loopback. */
export interface HindsightServer {
  readonly url: string
  /** Base URL of an OpenAI-compatible server: what it asks for vectors, ranks and completions. */
  readonly models: string
  /** The server and PostgreSQL. */
  readonly pids: readonly number[]
  /** Resolves when all of it has ended. */
  stop (): Promise<void>
}

/**
 * It ends with this process, however that ends. Where it cannot be had, the reason.
 * @param env settings of the server, `HINDSIGHT_API_*`
 */
export async function startHindsight (env: Readonly<Record<string, string>> = {}): Promise<HindsightServer | string> {
  const child = spawn(join(root, 'test/engines/hindsight.sh'), ['run'], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const exited = once(child, 'exit')
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => { said = `${said}${chunk.toString()}`.slice(-4_000) })
  const line = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([first]) => String(first)),
    exited.then(() => null)
  ])
  if (line === null) return `hindsight.sh run: ${said.trim().split('\n').slice(-5).join('\n')}`
  const stop = async (): Promise<void> => {
    child.stdin.end()
    await exited
  }
  return { ...JSON.parse(line) as Omit<HindsightServer, 'stop'>, stop }
}
