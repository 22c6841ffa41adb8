// Loaded into every test process after the loaders of the test runner ("node-arg" of tap in package.json).

/*
 * undici's dispatcher serves `fetch` from here on. That of Node 20 never settles when a server takes a connection and
 * closes it without an answer, as the proxy of a container does whose engine is not up yet.
 */
import 'undici'

/*
 * Processes that a test starts are what they are anywhere else. With the runner's loader each of them would take half a
 * second more to start, and its modules would come by way of another thread.
 */
const spawned = (globalThis as Record<symbol, { readonly listeners: unknown[] } | undefined>)[Symbol.for('process-on-spawn@*:singletonId')]
spawned?.listeners.splice(0)
delete process.env.NODE_OPTIONS
process.execArgv.length = 0
