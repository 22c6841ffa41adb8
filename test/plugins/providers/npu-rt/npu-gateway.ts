import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import OpenAI from 'openai'
import type { Test } from 'tap'
import type { AnyPlugin } from '../../../../kernel/contract/index.js'
import type { ContainerRuntime } from '../../../../kernel/contract/provider/engine-runtime.js'
import { createTestGateway, type TestGateway } from '../../../../kernel/testing/index.js'
import npuRt from '../../../../plugins/providers/npu-rt/index.js'
import audioRoutes from '../../../../plugins/v1/audio/index.js'
import modelRoutes from '../../../../plugins/v1/models/index.js'
import textRoutes from '../../../../plugins/v1/text/index.js'
import vectorRoutes from '../../../../plugins/v1/vectors/index.js'
import { writeTree } from '../../../kernel/config/support.js'
import { deviceNodesOf, type Recording } from '../../../kernel/hardware/machines/recording.js'
import { reservePorts } from '../../../ports.js'
import type { FakeState } from './fake/server.js'

const MAIN = fileURLToPath(new URL('./fake/main.js', import.meta.url))
export const NPU = JSON.stringify({
  probed_at: '2026-01-01T00:00:00Z', ram_mb: 32768, npu: { present: true, vendor: 'amd', name: 'NPU', driver: 'amdxdna', accel_path: '/dev/accel/accel0' }
})
export const NPU_NODES = ['/dev/accel/accel0']
export const ANCHOR = 'type = "llm"\nprovider = "npu-rt"\ndevice = "npu"\n[model]\ndefault = "llama3.2:1b"\n[npu]\nasr = true\nembed = true\n'

export interface Answer {
  readonly status: number
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly json: any
}

export interface NpuGateway extends TestGateway {
  readonly client: OpenAI
  call (method: string, path: string, body?: unknown): Promise<Answer>
  /** Asks the engine of a slot how it is, and tells it how to work. */
  engine (settings?: Partial<FakeState>, slot?: string): Promise<FakeState>
  /** Tells `flm` how to fare, now and in runs to come. */
  order (text: string): void
}

export interface NpuGatewayOptions {
  readonly plugins?: readonly AnyPlugin[]
  readonly files?: Readonly<Record<string, string>>
  readonly anchor?: string
  readonly env?: Readonly<Record<string, string>>
  readonly svc?: string
  /** One that exists, and stays. */
  readonly home?: string
  readonly stopEngines?: boolean
  readonly pluginConfig?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly runtime?: ContainerRuntime
  readonly deviceNodes?: readonly string[]
  /** Instead of a machine that is told. */
  readonly machine?: Recording
}

/** A folder with the program `flm` in it, which does what the file `orders` beside it says (fake/orders.ts). */
export function flmOnPath (t: Test): string {
  const folder = join(t.testdir({}), 'bin')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'flm'), `#!/bin/sh\nFAKE_FLM_ORDERS='${join(folder, 'orders')}' exec '${process.execPath}' '${MAIN}' "$@"\n`)
  chmodSync(join(folder, 'flm'), 0o755)
  return folder
}

const pool = await reservePorts()

/** A gateway whose slot `npu` runs the fake FastFlowLM as a child process, on a machine that seems to have an NPU. */
export async function npuGateway (t: Test, options: NpuGatewayOptions = {}): Promise<NpuGateway> {
  const { plugins = [], files = {}, anchor = ANCHOR, env = {}, svc = '', home, stopEngines = true, pluginConfig = {}, runtime, machine } = options
  const deviceNodes = options.deviceNodes ?? (machine === undefined ? NPU_NODES : deviceNodesOf(machine))
  const folder = flmOnPath(t)
  const hardwareRoot = join(folder, '..', 'machine')
  if (machine !== undefined) writeTree(hardwareRoot, machine.tree)
  const gateway = await createTestGateway({
    ...home === undefined ? {} : { home },
    ...runtime === undefined ? {} : { runtime },
    ...machine === undefined ? {} : { hardwareRoot },
    stopEngines,
    pluginConfig,
    deviceNodes,
    plugins: [npuRt, textRoutes, vectorRoutes, audioRoutes, modelRoutes, ...plugins],
    env: { ...process.env, PATH: `${folder}:${process.env.PATH}`, ...env },
    files: {
      'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n${pool.toml}${svc}`,
      ...machine === undefined ? { 'etc/svc/hardware.json': NPU } : {},
      ...anchor === '' ? {} : { 'etc/svc/slots/npu.toml': anchor },
      ...files
    }
  })
  t.teardown(() => gateway.close())
  return Object.assign(gateway, {
    order: (text: string) => writeFileSync(join(folder, 'orders'), text),
    client: new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'none', maxRetries: 0 }),
    call: async (method: string, path: string, body?: unknown) => {
      const init = body === undefined ? { method } : { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
      const response = await gateway.fetch(path, init)
      return { status: response.status, json: await response.json().catch(() => null) as unknown }
    },
    engine: async (settings: Partial<FakeState> = {}, slot = 'npu') => {
      const { address } = gateway.slots.status(slot)
      if (address === null) throw new Error(`no engine runs for ${slot}`)
      // a connection that the engine lets go of at the same moment would fail the request
      const answer = await fetch(`http://${address.host}:${address.port}/__test__`, {
        method: 'POST', headers: { connection: 'close' }, body: JSON.stringify(settings)
      })
      return await answer.json() as FakeState
    }
  })
}
