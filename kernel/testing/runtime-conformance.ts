import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import type { ContainerRuntime, EngineSpec } from '../contract/provider/engine-runtime.js'
import type { ConformanceCheck } from './provider-conformance.js'
import { runOnBench } from './runtime-bench.js'
import { findChecks } from './runtime-find-checks.js'
import { lifeChecks } from './runtime-life-checks.js'
import { logChecks } from './runtime-log-checks.js'
import type { EngineWish } from './tiny-engine.js'

/** One driver under test. */
export interface RuntimeConformanceOptions {
  /** Opens the driver over the same engines each time, as a restarted gateway does. */
  readonly open: () => Promise<ContainerRuntime>
  /** A launch of the small engine: `tinyProcess`, or `tinyContainer` with an image that has `node`. */
  readonly spec: (wish: EngineWish) => EngineSpec
  /** An unused port. Default: one that the system gives. */
  readonly port?: () => Promise<number>
}

/**
 * What every driver must do, whatever runs the engines: they really start, on ports of this host, and each check leaves
 * nothing behind. They may run one after the other only.
 */
export function runtimeConformance ({ open, spec, port = freePort }: RuntimeConformanceOptions): readonly ConformanceCheck[] {
  return [...lifeChecks, ...findChecks, ...logChecks].map(check => ({
    name: check.name,
    run: async () => { await runOnBench(check, { open, spec, port }) }
  }))
}

async function freePort (): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
