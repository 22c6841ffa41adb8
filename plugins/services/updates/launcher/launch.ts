/*
 * Starts the release in use. It lies beside the trees of releases, as launch.mjs, so that a release that is broken cannot
 * break it: it imports nothing of a release before that runs. While a new release is on trial it is a child of this one, which
 * goes back when the child ends or does not confirm in time; at all other times this process becomes the gateway.
 */

import { spawn, type ChildProcess } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dropKept, keepFiles, pointTo, putBack, readSwitch, writeSwitch, type Switch } from './switch-file.js'

/** What a gateway ends with that wants to be started again. */
const RESTART = 75
const MOST_ATTEMPTS = 3
const LOOK_EVERY_MS = 200
/** How long a release that failed may take to end before it is killed. */
const KILL_MS = 10_000

// it is a program: what Node was given is this file
const base = dirname(realpathSync(process.argv[1]!))
const [, , ...words] = process.argv
process.env.SVC_LAUNCHED = String(process.pid)

interface Ended { readonly code: number | null, readonly signal: NodeJS.Signals | null }
type Outcome = Ended & { readonly confirmed: boolean, readonly stopped: boolean, readonly why: string }

while (await tryNew()) { /* until the release in use is one that nothing is to be tried on */ }
const program = join(base, 'current', 'dist', 'lib', 'svc.cjs')
process.argv = [process.argv[0]!, program, ...words]
await import(pathToFileURL(program).href)

/** Whether something was tried, so that there is to look once more. Ends the process where that is over. */
async function tryNew (): Promise<boolean> {
  if (words[0] !== 'serve') return false
  const found = await readSwitch(base)
  if (found === null || found.phase === 'confirmed' || found.phase === 'returned') return false
  let next = found
  if (next.phase === 'prepared') {
    try {
      await keepFiles(base, next)
    } catch (error) {
      // nothing was changed so far
      await returned(next, `what it migrates could not be kept: ${error instanceof Error ? error.message : String(error)}`)
      return true
    }
    // said first: what the link leads to is then looked at, whatever happens in between
    next = { ...next, phase: 'switched', attempts: 0 }
    await writeSwitch(base, next)
  }
  await pointTo(base, next.to)
  if (next.attempts >= MOST_ATTEMPTS) {
    await goBack(next, `it was interrupted ${MOST_ATTEMPTS} times before it confirmed`)
    return true
  }
  next = { ...next, attempts: next.attempts + 1 }
  await writeSwitch(base, next)
  const outcome = await watch(next)
  if (outcome.code === RESTART && outcome.confirmed) return true
  if (outcome.confirmed || outcome.stopped) {
    // a stop in the middle of a trial is no failure of the release
    if (!outcome.confirmed) await writeSwitch(base, { ...next, attempts: next.attempts - 1 })
    process.exit(outcome.code ?? 128 + constants.signals[outcome.signal!])
  }
  await goBack(next, outcome.why)
  return true
}

async function goBack (failed: Switch, why: string): Promise<void> {
  await putBack(base, failed)
  await pointTo(base, failed.from)
  await returned(failed, why)
}

async function returned (failed: Switch, why: string): Promise<void> {
  await writeSwitch(base, { ...failed, phase: 'returned', why })
  await dropKept(base, failed.job)
  process.stderr.write(`svc: ${failed.to} was tried and did not stay (${why}); ${failed.from} runs again\n`)
}

/** Runs the release until it ends, and ends it when it does not confirm in time. */
async function watch ({ job, to, answerWithinMs }: Switch): Promise<Outcome> {
  // its input ends with this process, and then it stops: nothing is left running that no one watches
  const child = spawn(process.execPath, [...process.execArgv, join(base, to, 'dist', 'lib', 'svc.cjs'), ...words, '--stop-on-stdin-end'], {
    stdio: ['pipe', 'inherit', 'inherit']
  })
  child.stdin!.on('error', () => {})
  const ended = endOf(child)
  let [stopped, late] = [false, false]
  const forward = (signal: NodeJS.Signals): void => {
    stopped = true
    child.kill(signal)
  }
  const signals: NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP']
  for (const signal of signals) process.on(signal, forward)
  const deadline = performance.now() + answerWithinMs
  let kill: NodeJS.Timeout | null = null
  const look = setInterval(() => {
    void isConfirmed(job).then(confirmed => {
      if (confirmed) return clearInterval(look)
      if (performance.now() < deadline || late) return
      late = true
      child.kill('SIGTERM')
      kill = setTimeout(() => child.kill('SIGKILL'), KILL_MS)
    })
  }, LOOK_EVERY_MS)
  const { code, signal } = await ended
  clearInterval(look)
  if (kill !== null) clearTimeout(kill)
  for (const each of signals) process.off(each, forward)
  const why = late ? `it did not answer within ${answerWithinMs / 1000} s` : `it ended with ${signal ?? `exit code ${code ?? 'unknown'}`}`
  return { code, signal, confirmed: await isConfirmed(job), stopped, why }
}

/** The new release says so, and cleans up afterwards. */
async function isConfirmed (job: string): Promise<boolean> {
  const now = await readSwitch(base)
  return now === null || now.job !== job || now.phase === 'confirmed'
}

function endOf (child: ChildProcess): Promise<Ended> {
  return new Promise(resolve => {
    child.once('error', () => resolve({ code: 1, signal: null }))
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
}
