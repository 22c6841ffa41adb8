import { readdir, readFile, rm } from 'node:fs/promises'
import { writeFileSync } from 'node:fs'
import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { updateError } from './errors.js'

/** Beside the copies: which process tries a release, for a gateway that comes after one that was killed. */
const RECORD = 'upgrade-trial.json'
const TRIAL_MS = 180_000
const MOST_OUTPUT = 4 * 1024 * 1024
const GONE_POLL_MS = 20

interface Recorded { readonly pid: number, readonly program: string }

export interface TrialRun {
  readonly program: string
  readonly args: readonly string[]
  /** Where the trial makes its copy. */
  readonly state: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

/**
 * Runs a release that tries a copy of the home, and resolves with what it wrote, however it ended. Neither it nor its copy is
 * there afterwards.
 */
export async function runTrialProcess (
  { program, args, state, env, signal }: TrialRun
): Promise<{ readonly stdout: string, readonly stderr: string }> {
  const record = join(state, RECORD)
  let pid: number | undefined
  try {
    return await new Promise((resolve, reject) => {
      // one that hangs may be deaf to a gentler signal; its copy is removed here in any case
      const options = { env, timeout: TRIAL_MS, maxBuffer: MOST_OUTPUT, signal, killSignal: 'SIGKILL' as const }
      const child = execFile(process.execPath, [program, ...args], options,
        (_error, stdout, stderr) => resolve({ stdout, stderr }))
      pid = child.pid
      try {
        if (pid !== undefined) writeFileSync(record, JSON.stringify({ pid, program }), { mode: 0o600 })
      } catch (error) {
        child.once('exit', () => reject(updateError('system.update_trial_failed', `the record of the trial cannot be saved: ${String(error)}`)))
        child.kill('SIGKILL')
      }
    })
  } finally {
    if (pid !== undefined) await removeCopies(state, of => Promise.resolve(of === pid))
    await rm(record, { force: true })
  }
}

/**
 * Ends the trial of a gateway that was killed, and removes copies of the home, secrets among them, whose process is gone. A check
 * that an operator runs by hand goes on and keeps its copy.
 */
export async function sweepTrials (state: string): Promise<void> {
  const record = join(state, RECORD)
  const { pid, program } = await readFile(record, 'utf8').then(text => JSON.parse(text) as Recorded).catch(() => ({ pid: 0, program: '' }))
  if (pid > 0 && await isTrial(pid, program)) {
    process.kill(pid, 'SIGKILL')
    while (await isTrial(pid, program)) await wait(GONE_POLL_MS)
  }
  // earlier releases name no process
  await removeCopies(state, async of => of === null || !await isRunning(of))
  await rm(record, { force: true })
}

async function removeCopies (state: string, fits: (pid: number | null) => Promise<boolean>): Promise<void> {
  for (const name of await readdir(state)) {
    const copy = /^upgrade-(?:(\d+)-)?/.exec(name)
    if (copy === null || !await fits(copy[1] === undefined ? null : Number(copy[1]))) continue
    await rm(join(state, name), { recursive: true, force: true })
  }
}

/** Whether a process is the one that was written down: numbers are given again. */
async function isTrial (pid: number, program: string): Promise<boolean> {
  return program !== '' && (await wordsOf(pid))?.includes(program) === true
}

/** One that has ended and that its parent does not wait for is not running, and has no words. */
async function isRunning (pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return await wordsOf(pid) !== ''
}

/** What a process was started with; null where that is not shown. */
async function wordsOf (pid: number): Promise<string | null> {
  if (process.platform === 'linux') return await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => null)
  return spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout
}
