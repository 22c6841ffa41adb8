// Loaded into every test process before anything else ("test-env" of tap in package.json).

import asyncHooks from 'node:async_hooks'
import { rmSync } from 'node:fs'
import Module, { syncBuiltinESMExports } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import workerThreads from 'node:worker_threads'

/*
 * undici's dispatcher serves `fetch` from here on. That of Node 20 never settles when a server takes a connection and
 * closes it without an answer, as the proxy of a container does whose engine is not up yet.
 */
import 'undici'
import { shippedThread } from './bundle/fresh.js'
import { lighterCode } from './bundle/lighter-code.js'
import { keepTemporaryFilesInMemory, testFolders } from './memory-folder.js'
import { withoutShims } from './pyenv.js'

// the rings install whole programs
const memory = /\/rings\//.test(process.argv[1] ?? '') ? null : keepTemporaryFilesInMemory()

if (process.env.PATH !== undefined) process.env.PATH = withoutShims(process.env.PATH, process.env)

/*
 * V8 makes fast code of what has run for a while, in threads beside. A test file is over before most of that has paid: this
 * is a fifth of its processor time. What runs for seconds is made fast all the same, a little later.
 */
setFlagsFromString('--interrupt-budget=1000000')

interface Compiling {
  readonly _compile: (this: unknown, code: string, file: string, ...rest: unknown[]) => unknown
}

/*
 * A gateway mounts a thousand routes. What ships does so with less work, and the tests of it then start their gateways
 * in the same way.
 */
const compile = (Module.prototype as unknown as Compiling)._compile
Object.assign(Module.prototype, {
  _compile (this: unknown, code: string, file: string, ...rest: unknown[]) {
    const isRouter = /\/node_modules\/(?:fastify|find-my-way)\/lib\//.test(file)
    return compile.call(this, isRouter ? lighterCode(file, code) ?? code : code, file, ...rest)
  }
})

/*
 * A thread of the gateway is the one file that ships, as the programs that tests start are: the modules of the memory's
 * thread take as long again as all else of its start.
 */
const { Worker } = workerThreads
Object.assign(workerThreads, {
  Worker: class extends Worker {
    constructor (file: string | URL, options?: workerThreads.WorkerOptions) {
      super(file instanceof URL ? shippedThread(file) : file, options)
    }
  }
})
syncBuiltinESMExports()

/*
 * The test runner keeps book of the modules that every process loads, for coverage and for `tap changed`. All modules
 * come by way of another thread then: a second per file, and more for the processes that a test starts, which are to be
 * what they are anywhere else.
 */
if (process.env._TAPJS_PROCESSINFO_COVERAGE_ !== '1') {
  const book = { files: [], sources: {}, uuid: '', root: '', parent: null }
  Object.assign(globalThis, { [Symbol.for('@tapjs/processinfo.ProcessInfoNodeData')]: book })
  Object.assign(Module, { register: () => undefined })
}
delete process.env.NODE_OPTIONS
process.execArgv.length = 0

/*
 * The runner follows every promise and timer from its making to its end, to tell the test that an error which nothing
 * catches belongs to: half of the processor time of a test that awaits a lot. Such an error ends the process here, as it
 * does anywhere else, and the runner names the tests that had not ended.
 */
const { createHook } = asyncHooks
let follows = false
Object.assign(asyncHooks, {
  createHook: () => {
    follows = true
    return { enable: () => {}, disable: () => {} }
  }
})
syncBuiltinESMExports()
const { default: t } = await import('tap')
Object.assign(asyncHooks, { createHook })
syncBuiltinESMExports()
if (!follows) throw new Error('tap does not follow promises any more, or another way: see to test/preload.ts')

/*
 * The runner removes the folder of a test before what the test left to `teardown`, when the folder was made first: a gateway
 * that still runs would write into a folder that is being removed. What is left to the teardown first is done last. The
 * runner also leaves the working directory for that of a folder outside of it, as those in memory are.
 */
if (memory !== null) Object.assign(t, { testdirName: testFolders(memory), saveFixture: true })
t.beforeEach(test => {
  if (memory !== null) test.saveFixture = true
  test.teardown(() => { if (memory !== null) rmSync(test.testdirName, { recursive: true, force: true, maxRetries: 5 }) })
})
