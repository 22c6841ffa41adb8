import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import t from 'tap'

/** For one file: a test that hangs must not take the time of those that come after it. */
const FILE_MS = 300_000

type Teardown = Parameters<typeof t.teardown>[0]

/**
 * Runs test files one after the other in this process. They are named by their paths under `test/`. Those that are `shared`
 * with other processes of the same run are taken one by one, so that none idles while another has the long ones before it.
 */
export async function runGroup (files: readonly string[], shared = false): Promise<void> {
  // what a file leaves for its end must not wait for the end of the group
  const teardowns: Teardown[] = []
  const later = (teardown: Teardown): void => { teardowns.push(teardown) }
  Object.assign(t, { teardown: later, after: later })
  // says where listeners pile up, which the warning on standard error does not
  process.on('warning', ({ name, stack }) => { if (name === 'MaxListenersExceededWarning') t.comment(stack) })
  for (const file of !shared || process.env.TAP_CHILD_ID === undefined ? files : untaken(files)) {
    t.setTimeout(FILE_MS)
    t.comment(file)
    const before = surroundings()
    const cost = costs()
    await import(new URL(file, import.meta.url).href)
    await t.test(`${file} leaves the process as it was`, async test => {
      t.jobs = 1
      for (const teardown of teardowns.splice(0).reverse()) await teardown.call(test)
      test.same(surroundings(), before)
    })
    t.comment(`${file}: ${cost()}`)
  }
}

/** The runner is the parent of all processes of a run, and of no other run's. */
function* untaken (files: readonly string[]): Generator<string> {
  const folder = new URL(`groups/taken-${process.ppid}/`, import.meta.url)
  mkdirSync(folder, { recursive: true })
  for (const file of files) {
    try {
      closeSync(openSync(new URL(`${file.replaceAll('/', '+')}.taken`, folder), 'wx'))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      continue
    }
    yield file
  }
  t.pass('every file is taken')
}

/** What it takes from here on, for whoever wants the tests to take less. */
function costs (): () => string {
  const [at, own, others] = [performance.now(), process.cpuUsage(), ofPrograms()]
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
  return () => {
    const { user, system } = process.cpuUsage(own)
    return `${seconds(performance.now() - at)}, of processor time ${seconds((user + system) / 1000)}, and ${seconds(ofPrograms() - others)} of programs`
  }
}

/** Milliseconds of processor time of the programs that this process started and that have ended; 0 where there is no procfs. */
function ofPrograms (): number {
  if (!existsSync('/proc/self/stat')) return 0
  const [user, system] = readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) /s, '').split(' ').slice(13, 15).map(Number)
  return (user! + system!) * 10
}

/** What the next file would stumble over. */
function surroundings (): object {
  return { env: { ...process.env }, folder: process.cwd(), exitCode: process.exitCode ?? 0 }
}
