import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { pause, type Clock } from 'svc-gateway/plugin'
import type { AgentOutcome, AgentRunner, AgentTask, AgentWorld } from './ref.js'

/** An agent is a program of this machine. */
export interface AgentCommand {
  readonly label: string
  readonly command: readonly string[]
  readonly folder: string | null
  readonly env: Readonly<Record<string, string>>
}

export interface CommandDeps {
  readonly clock: Clock
  readonly agents: Readonly<Record<string, AgentCommand>>
  /** Null while the gateway does not listen. */
  readonly baseUrl: () => string | null
}

/** What a process group has after it was asked to end. */
const ENDING_MS = 5_000
const LOOK_MS = 50

/**
 * Agents of `[plugins.config.board.agents]`: a program gets its task as JSON on its standard input, and words of where it is in
 * its environment. What it writes is the log of the run, the last line of its standard output the summary; 0 means done.
 */
export function commandRunner ({ clock, agents, baseUrl }: CommandDeps): AgentRunner {
  return {
    agents: () => Object.entries(agents).map(([id, { label }]) => ({ id, label: label === '' ? id : label })),
    run: (task, world) => runCommand(clock, agents[task.agent]!, baseUrl(), task, world),
    end: async handle => {
      const { pid, began } = JSON.parse(handle) as { pid?: number, began?: string }
      if (pid !== undefined && began !== undefined && beginOf(pid) === began) await endGroup(clock, pid)
    }
  }
}

async function runCommand (
  clock: Clock, { command: [program = '', ...args], folder, env }: AgentCommand, baseUrl: string | null, { run, agent, board, task }: AgentTask,
  { signal, log, keep }: AgentWorld
): Promise<AgentOutcome> {
  signal.throwIfAborted()
  const child = spawn(program, args, {
    // a group of its own, so that what it starts ends with it
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(folder === null ? {} : { cwd: folder }),
    env: { ...own(), ...env, SVC_API_URL: baseUrl ?? '', SVC_AGENT: agent, SVC_BOARD: board, SVC_TASK: task.id, SVC_RUN: run }
  })
  const ended = endOf(child)
  const { pid } = child
  if (pid === undefined) return await ended.then(() => ({ ok: false, message: `${program} did not start` }))
  // in the same turn: a gateway that is killed leaves none that the next one does not find
  keep(JSON.stringify({ pid, began: beginOf(pid) }))
  const stop = (): void => { void endGroup(clock, pid) }
  signal.addEventListener('abort', stop, { once: true })
  child.stdin.on('error', () => {})
  child.stdin.end(`${JSON.stringify({ run, board, task })}\n`)
  let last = ''
  createInterface({ input: child.stdout }).on('line', line => {
    if (line.trim() !== '') last = line.trim()
    log(line)
  })
  createInterface({ input: child.stderr }).on('line', line => log(line))
  try {
    const code = await ended
    return code === 0 ? { ok: true, message: last } : { ok: false, message: `${program} ended with ${code}${last === '' ? '' : `: ${last}`}` }
  } finally {
    signal.removeEventListener('abort', stop)
    // what it left in the background
    kill(pid, 'SIGKILL')
  }
}

function endOf (child: ChildProcess): Promise<number | string> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'nothing'))
  })
}

async function endGroup (clock: Clock, pid: number): Promise<void> {
  kill(pid, 'SIGTERM')
  const end = clock.monotonic() + ENDING_MS
  while (lives(pid) && clock.monotonic() < end) await pause(clock, LOOK_MS)
  kill(pid, 'SIGKILL')
}

/** One that is over and that nothing has waited for does not. */
function lives (pid: number): boolean {
  return statOf(pid)?.[0] !== 'Z' && kill(pid, 0)
}

/** To the whole group; false when nothing is left of it. */
function kill (pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal)
    return true
  } catch {
    return false
  }
}

/** What programs need of the gateway's environment; its secrets are not theirs. */
function own (): Record<string, string> {
  const names = ['PATH', 'HOME', 'USER', 'LANG', 'TMPDIR', 'TZ']
  return Object.fromEntries(names.flatMap(name => process.env[name] === undefined ? [] : [[name, process.env[name]]]))
}

/** Tells a process from a later one of the same number: when it began. Undefined where that cannot be known. */
function beginOf (pid: number): string | undefined {
  return statOf(pid)?.[19]
}

/** The fields behind the name, which may hold anything: the first is the state. Null for no such process, and without /proc. */
function statOf (pid: number): readonly string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return null
  }
}
