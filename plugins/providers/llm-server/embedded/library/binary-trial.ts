import childProcess, { type ChildProcess, type ForkOptions } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { syncBuiltinESMExports } from 'node:module'

/** Releases of the library whose words with the process of its trial are those below. */
const KNOWN: readonly string[] = ['3.21.1']

const PROGRAM = /[/\\]testBindingBinary\.js$/

/**
 * Runs `load` while the library's trial of its binary passes at once. The library has another process load the binary first,
 * with all of its own modules, so that one that this machine cannot run ends only that. An engine is a process of its own
 * already, and where there is one binary to choose from it cannot go on without it: its model is there half a second earlier.
 * A release of the library that is not known makes its trial.
 */
export async function withoutTrial<T> (release: string, load: () => Promise<T>): Promise<T> {
  if (!KNOWN.includes(release)) return load()
  const { fork } = childProcess
  const passing = (program: string | URL, args?: readonly string[], options?: ForkOptions): ChildProcess =>
    PROGRAM.test(String(program)) ? passed() : fork(program, args, options)
  replaceFork(passing)
  try {
    return await load()
  } finally {
    replaceFork(fork)
  }
}

function replaceFork (fork: unknown): void {
  Object.assign(childProcess, { fork })
  syncBuiltinESMExports()
}

/** Says what that process says when all is well. */
function passed (): ChildProcess {
  const trial = Object.assign(new EventEmitter(), {
    exitCode: null,
    kill: () => true,
    send: ({ type }: { readonly type: string }) => type === 'exit' ? trial.emit('exit', 0) : trial.emit('message', { type: 'done' })
  })
  queueMicrotask(() => trial.emit('message', { type: 'ready' }))
  return trial as unknown as ChildProcess
}
