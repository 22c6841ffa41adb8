import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { Script } from 'node:vm'
import { isGateway } from '../heap-flags.js'
import { CodeCache } from './code-cache.js'
import { LargeFiles } from './large-files.js'
import { nameSources } from './source-lines.js'

/** Names the code of this bundle. Set where it is made. */
declare const SVC_BUILD: string

type Chunk = (
  exports: object, require: (id: string) => unknown, module: { exports: object }, filename: string, dirname: string,
  load: (specifier: string) => Promise<unknown>, urlOf: (path: string) => string
) => void

/** Long enough for a start: what it called is in the cache then. */
const STARTED_AFTER_MS = 2_500
/** Where Node tells of each request to a server of this process. */
const REQUEST = 'http.server.request.start'

const folder = fileURLToPath(new URL('.', import.meta.url))
const requireOutside = createRequire(import.meta.url)
const loaded = new Map<string, { exports: object }>()
const files = new LargeFiles()
const forGateway = isGateway(process.argv.slice(2))
/** Two of a gateway: V8 takes cached code only under the flags that it was made under. */
const ofStart = new CodeCache({ build: SVC_BUILD, folder, use: forGateway ? 'serve' : 'command' }, files)
const ofService = forGateway ? new CodeCache({ build: SVC_BUILD, folder, use: 'service' }, files) : ofStart
let cache = ofStart
/** Whether the flags are those of the start of a gateway. */
let starts = forGateway

/** Loads a part of the bundle, once in a process: what is imported by two ways is one module. */
export function loadChunk (name: string): object {
  const known = loaded.get(name)
  if (known !== undefined) return known.exports
  const module = { exports: {} }
  loaded.set(name, module)
  const path = join(folder, name)
  // the code is plain ASCII, so that V8 keeps a byte for each character
  const source = files.read(path).toString('latin1')
  const cachedData = cache.read(name)
  if (starts) setStartGrowth()
  const script = new Script(source, { filename: path, ...(cachedData === undefined ? {} : { cachedData }) })
  if (cachedData === undefined || script.cachedDataRejected === true) cache.missed(name, script)
  const chunk = script.runInThisContext() as Chunk
  chunk(module.exports, id => id.startsWith('./') ? loadChunk(id.slice(2)) : requireOutside(id), module, path, folder, load, urlOf)
  return module.exports
}

function load (specifier: string): Promise<unknown> {
  return import(specifier)
}

/** Where a source lies as the bundle has it: what is beside it is found from there. */
function urlOf (path: string): string {
  return pathToFileURL(join(folder, path)).href
}

/** What the gateway is asked about itself, as while its slots come up, is no load. */
function optimizeForWork (message: unknown): void {
  const { request: { method, url } } = message as { readonly request: { readonly method: string, readonly url: string } }
  if (method === 'POST' && !url.startsWith('/api/')) optimize()
}

function optimize (): void {
  unsubscribe(REQUEST, optimizeForWork)
  setWorkFlags()
  starts = false
  cache = ofService
}

/** What is made at a start lives on: it is allocated as long-lived, in a heap that may grow to several times what it has. */
function setStartFlags (): void {
  setFlagsFromString('--no-opt')
  setFlagsFromString('--heap-growing-percent=300')
  // undici reads answers with WebAssembly that is mostly one large function: V8 optimizes it soon after a start, which takes
  // 10 MiB that the C library keeps. A thousand times later it pays: looks at engines that idle do not come to that
  setFlagsFromString('--wasm-tiering-budget=1800000000')
  setStartGrowth()
}

/** The young generation does not grow. V8 sets that back whenever a thread is started. */
function setStartGrowth (): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}

function setWorkFlags (): void {
  setFlagsFromString('--opt')
  setFlagsFromString('--heap-growing-percent=100')
  setFlagsFromString('--semi-space-growth-factor=2')
}

/** V8 takes what was made of the start only under the flags of the start. */
function underStartFlags<T> (work: () => T): T {
  if (starts) setStartGrowth()
  else if (forGateway) setStartFlags()
  try {
    return work()
  } finally {
    if (forGateway && !starts) setWorkFlags()
  }
}

/** One file in a turn of the event loop: all of them would hold up whatever comes meanwhile. */
function keepStart (): void {
  files.release()
  if (underStartFlags(() => ofStart.saveOne())) setImmediate(keepStart)
  else if (forGateway) optimize()
}

nameSources(folder)
if (forGateway) {
  // what a start runs often enough for V8 to optimize it is rarely run again: a quarter of its processor time, in threads beside.
  // Requests would take six times as long
  setStartFlags()
  subscribe(REQUEST, optimizeForWork)
}
// what takes everything away leaves nothing of itself
if (process.argv[2] !== 'uninstall') {
  setTimeout(keepStart, STARTED_AFTER_MS).unref()
  process.on('exit', () => {
    underStartFlags(() => ofStart.save())
    ofService.save()
  })
}
