import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { root } from '../../repository.js'

const MOST_MS = 240_000

export interface Ended { readonly code: number | string | null, readonly stdout: string, readonly stderr: string }

export interface Stage {
  readonly work: string
  /** Runs a command in the folder `work`, as a user with that home. */
  readonly run: (command: string, args: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>
  readonly svc: (...words: readonly string[]) => Promise<Ended>
}

function run (command: string, args: readonly string[], env: Readonly<Record<string, string>>, cwd: string): Promise<Ended> {
  return new Promise(resolve => {
    const child = execFile(command, [...args], { env, cwd, timeout: MOST_MS, killSignal: 'SIGKILL', maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : error.code ?? error.signal ?? 1, stdout, stderr }))
    child.stdin!.end()
  })
}

/** Ends what a program has left running: every process that has the mark in its environment. */
async function endMarked (mark: string): Promise<void> {
  for (const pid of (await readdir('/proc')).filter(name => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (!environment.split('\0').includes(`SVC_RING_MARK=${mark}`)) continue
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // it ended by itself
    }
  }
}

/** Where a program runs: a home of its own; what it leaves running ends with the test. */
export async function stageOf (t: Test, home: string, program: string): Promise<Stage> {
  const work = join(home, 'work')
  await mkdir(work)
  const mark = randomUUID()
  t.teardown(() => endMarked(mark))
  const { PATH = '' } = process.env
  const surroundings = { PATH: `${join(program, '..')}:${PATH}`, HOME: home, LANG: 'C.UTF-8', TERM: 'dumb', SVC_RING_MARK: mark }
  const inHome: Stage['run'] = (command, args, env = {}) => run(command, args, { ...surroundings, ...env }, work)
  return { work, run: inHome, svc: (...words) => inHome(process.execPath, [join(root, 'dist/cli/svc.js'), ...words]) }
}

export async function emptyHome (t: Test, name: string): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), `svc-ring-${name}-`))
  t.teardown(() => rm(home, { recursive: true, force: true, maxRetries: 5 }))
  return home
}
