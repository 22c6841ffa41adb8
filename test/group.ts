import t from 'tap'

/** For one file: a test that hangs must not take the time of those that come after it. */
const FILE_MS = 150_000

type Teardown = Parameters<typeof t.teardown>[0]

/** Runs test files one after the other in this process. They are named by their paths under `test/`. */
export async function runGroup (files: readonly string[]): Promise<void> {
  // what a file leaves for its end must not wait for the end of the group
  const teardowns: Teardown[] = []
  const later = (teardown: Teardown): void => { teardowns.push(teardown) }
  Object.assign(t, { teardown: later, after: later })
  for (const file of files) {
    t.setTimeout(FILE_MS)
    t.comment(file)
    const before = surroundings()
    await import(new URL(file, import.meta.url).href)
    await t.test(`${file} leaves the process as it was`, async test => {
      t.jobs = 1
      for (const teardown of teardowns.splice(0).reverse()) await teardown.call(test)
      test.same(surroundings(), before)
    })
  }
}

/** What the next file would stumble over. */
function surroundings (): object {
  return { env: { ...process.env }, folder: process.cwd(), exitCode: process.exitCode ?? 0 }
}
