import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'

const SCRIPT_MS = 600_000
const END_MS = 120_000

/** Of the test runner and the npm that started it: they would change what the commands of a newcomer do. */
const FOREIGN = /^(NODE_(OPTIONS|V8_COVERAGE|TEST_CONTEXT)$|_?TAP|npm_(lifecycle|package|command|execpath|config_local_prefix)|INIT_CWD$|SVC_|DOCKER_HOST$)/

export type Env = Readonly<Record<string, string>>

export function cleanEnv (more: Env): Env {
  const own = Object.entries(process.env).filter(([name]) => !FOREIGN.test(name)) as Array<[string, string]>
  return { ...Object.fromEntries(own), ...more }
}

/** Runs a script as bash does at a prompt, and gives all that it printed. What it started ends with it. */
export async function sh (t: Test, cwd: string, env: Env, script: string): Promise<string> {
  const started = performance.now()
  const child = spawn('bash', ['-euo', 'pipefail', '-c', script], { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const output: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => { output.push(chunk) })
  const timer = setTimeout(() => killGroup(child), SCRIPT_MS)
  const [code] = await once(child, 'close') as [number | null]
  clearTimeout(timer)
  const text = Buffer.concat(output).toString('utf8')
  if (code !== 0) throw new Error(`exit code ${String(code)} of:\n${script}\n${text}`)
  t.comment(`${((performance.now() - started) / 1000).toFixed(1)} s: ${script.trim().split('\n', 1)[0]}`)
  return text
}

export interface Running {
  readonly child: ChildProcess
  /** The first line on standard output. Rejects when there is none. */
  readonly firstLine: string
  /** All of standard error so far. */
  readonly errors: () => string
  /** Resolves with the exit code; null when it had to be killed. */
  end (signal: NodeJS.Signals): Promise<number | null>
}

/** A Node program that stays, from its first line on. Killed after the test when it still runs. */
export async function startNode (t: Test, args: readonly string[], env: Env): Promise<Running> {
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = once(child, 'exit') as Promise<[number | null]>
  const over = (): boolean => child.exitCode !== null || child.signalCode !== null
  t.teardown(async () => {
    if (over()) return
    child.kill('SIGKILL')
    await exited
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => { errors += chunk.toString('utf8') })
  const closed = once(child, 'close')
  const firstLine = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([line]) => String(line)),
    closed.then(([code]) => { throw new Error(`${args[0]} ended with ${String(code)}: ${errors}`) })
  ])
  return {
    child,
    firstLine,
    errors: () => errors,
    end: async signal => {
      child.kill(signal)
      const timer = setTimeout(() => child.kill('SIGKILL'), END_MS)
      const [code] = await exited
      clearTimeout(timer)
      return code
    }
  }
}

function killGroup (child: ChildProcess): void {
  try {
    process.kill(-child.pid!, 'SIGKILL')
  } catch {
    // it ended by itself just now
  }
}
