import { setFlagsFromString } from 'node:v8'

/**
 * Node's own modules that a gateway needs at its start. V8 takes cached code only under the flags that it was made under, and
 * theirs was made under those that V8 comes with: loaded behind a change they are all compiled anew, 22 ms instead of 8.
 */
const ownModules = [
  'node:assert', 'node:child_process', 'node:cluster', 'node:crypto', 'node:dgram', 'node:dns', 'node:fs/promises', 'node:http', 'node:https',
  'node:module', 'node:os', 'node:perf_hooks', 'node:process', 'node:readline', 'node:readline/promises', 'node:stream/promises',
  'node:timers/promises', 'node:url', 'node:vm', 'node:worker_threads', 'node:zlib'
]

/** What V8 comes with. */
const DEFAULT_DELAY_MS = 8_000
const LONGEST_DELAY_MS = 2 ** 31 - 1

/** Options in front of a command whose value is the word behind them. */
const withValue: ReadonlySet<string> = new Set(['--url'])

/** Whether a command line is that of a gateway. Other commands are over before the state of their heap matters. */
export function isGateway (words: readonly string[]): boolean {
  return words.find((word, i) => !word.startsWith('-') && !withValue.has(words[i - 1] ?? '')) === 'serve'
}

/** How V8 collects what requests are made of. To be called before anything else is loaded, for the code that is cached. */
export function setHeapFlags (): void {
  putOffMemoryReducer()
  for (const name of ownModules) process.getBuiltinModule(name)
  // V8 allocates in the old generation what outlived its first collections. The first ones of a gateway come while its first
  // requests run, so it would take all that requests are made of for long-lived: from then on each request would keep
  // everything it refers to until the next full collection, and pay more for collections than for all of its routing
  setFlagsFromString('--no-allocation-site-pretenuring')
  // what came in of bodies and answers since the last full collection counts as growth of the heap, though it lies outside.
  // By default a busy heap may grow by a tenth, so that every few megabytes all that the gateway consists of is looked
  // through. Where it may double, they are freed by collections of the young generation, at a tenth of the cost
  setFlagsFromString('--heap-growing-percent=100')
}

/**
 * Some seconds behind a full collection V8 makes two or three more, at the next moment in which little is allocated, to give
 * back what it can. Requests come in such moments too, and each of these collections holds the event loop for 10 to 20 ms; a
 * gateway has its own, which wait for quiet. V8 waits for such a moment once the old generation has grown by a megabyte, for as
 * long as it was told to at that time, and while it waits nothing makes it wait less. Without effect where it has grown before.
 */
function putOffMemoryReducer (): void {
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${LONGEST_DELAY_MS}`)
  // the name of a property is allocated in the old generation
  Reflect.has({}, ' '.repeat(2 ** 20))
  setFlagsFromString(`--gc-memory-reducer-start-delay-ms=${DEFAULT_DELAY_MS}`)
}
