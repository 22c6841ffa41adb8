import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { parseEngineArgs, type ParsedArgs } from './args.js'
import { loadEngine, type Engine } from './engine.js'
import { createHttpServer } from './http-server.js'
import { createLog } from './log.js'
import type { HostLibrary } from './model-host.js'
import { createRouter } from './routes.js'

/** Longest that requests may take to let go of the model when the engine stops. */
const STOP_WITHIN_MS = 500

const log = createLog()
const stopping = new AbortController()
let engine: Engine | null = null

// not `once`: what else listens, in the engine's libraries, ends the process by the signal when it is the last listener
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

const { args, ignored } = readArgs()
if (ignored.length > 0) log.warn(`ignored, the embedded engine does not support: ${ignored.join(' ')}`)

const server = createHttpServer(createRouter(() => engine), stopping.signal, log)
try {
  server.listen({ host: args.host, port: args.port })
  await once(server, 'listening')
} catch (error) {
  fail(`couldn't bind ${args.host}:${args.port}: ${messageOf(error)}`)
}
log.info(`listening on http://${args.host}:${(server.address() as AddressInfo).port}, loading ${args.model}`)

try {
  const startedAt = performance.now()
  engine = await loadEngine(args, readLibrary(), log)
  const { model, threads } = engine.host
  log.info(`model loaded in ${Math.round(performance.now() - startedAt)} ms: ${args.alias}, ${Math.round(model.size / 2 ** 20)} MiB, ` +
    `context ${engine.contextSize}, ${engine.pool.slots.length} slot(s), ${threads} thread(s), mode ${args.mode}`)
} catch (error) {
  fail(`cannot load ${args.model}: ${messageOf(error)}`)
}

function readArgs (): ParsedArgs {
  try {
    return parseEngineArgs(process.argv.slice(2))
  } catch (error) {
    fail(messageOf(error))
  }
}

function readLibrary (): HostLibrary {
  const { SVC_EMBEDDED_LIBRARY: path = '', SVC_EMBEDDED_GPU: gpu } = process.env
  return { path: path === '' ? null : path, gpu: gpu === 'cuda' || gpu === 'vulkan' ? gpu : null }
}

/** Drops every request and ends with code 0. A second signal does nothing: the end is near in any case. */
function stop (signal: NodeJS.Signals): void {
  if (stopping.signal.aborted) return
  log.info(`${signal}: stopping`)
  stopping.abort(new Error('the engine is stopping'))
  server.close()
  server.closeAllConnections()
  const deadline = performance.now() + STOP_WITHIN_MS
  // leaving in the middle of native work can crash, so wait for the token that is being computed
  const leave = (): void => {
    if ((engine?.pool.busy ?? 0) > 0 && performance.now() < deadline) setTimeout(leave, 5)
    else process.exit(0)
  }
  leave()
}

function fail (message: string): never {
  log.error(message)
  process.exit(1)
}

function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
