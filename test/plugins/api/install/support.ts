import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { defineAgent, definePlugin, type AnyPlugin } from '../../../../kernel/contract/index.js'
import apiAgents from '../../../../plugins/api/agents/index.js'
import { agentLifecycleRef } from '../../../../plugins/services/agents/ref.js'
import { createTestGateway, type TestGateway } from '../../../../kernel/testing/index.js'
import { engines } from '../capabilities/host.js'
import { apiPlugins, ScriptedRuntime, type Answer } from '../support.js'
import { eventually } from '../../../kernel/runtime/support.js'
import { FakeHub } from '../../services/hub/fake-hub.js'
import { tinyRegistry, type TinyRegistry } from '../../services/tiny-registry.js'

export interface InstallGateway extends TestGateway {
  readonly hub: FakeHub
  call (method: string, path: string, body?: unknown): Promise<Answer>
  /** Resolves when the slot's file says so. */
  slot (name: string, fits: (record: Record<string, unknown> & { metadata: Record<string, unknown> }) => boolean): Promise<void>
}

export interface InstallOptions {
  readonly home?: string
  readonly hub?: FakeHub
  readonly files?: Readonly<Record<string, string>>
  readonly svc?: string
  /** Besides those that ship. */
  readonly plugins?: readonly AnyPlugin[]
  /** What api-services is told; by default nothing is brought from registries. */
  readonly services?: object
}

/** The manifest of a tier whose models come from repositories of a hub of this machine. */
export function manifest (name: string, slots: ReadonlyArray<readonly [string, string]>, memoryGb = 0): string {
  const models = [...new Set(slots.map(([, id]) => id).filter(id => id !== ''))]
  return JSON.stringify({
    name,
    memory_gb: memoryGb,
    slots: slots.map(([capability, id]) => ({ capability, model_id: id })),
    models: models.map(id => ({ id, hf_repo: `org/${id}`, hf_file: `${id}.gguf`, size_gb: 0.01, context_length: 4096 }))
  })
}

/** Options of a gateway that knows an agent, `tiny`, which npm brings from a registry of this machine. */
export async function tinyAgent (t: Test): Promise<Required<Pick<InstallOptions, 'plugins' | 'services'>> & {
  /** Resolves when no work on it is under way. */
  readonly settled: () => Promise<void>
  readonly registry: TinyRegistry
}> {
  const packages = await tinyRegistry(t)
  let settled = (): Promise<void> => Promise.resolve()
  const agent = (id: string, name: string, version: string): ReturnType<typeof defineAgent> => defineAgent({
    id,
    name,
    description: 'An agent of a few lines',
    licence: { name: 'MIT', url: null },
    program: 'tiny',
    requests: [],
    install: { npm: { package: 'tiny-agent', version, bytes: 214_000_000 } },
    wiring: () => ({})
  })
  const crew = definePlugin({
    name: 'svc-tiny-agents',
    kind: 'service',
    apiVersion: 1,
    requires: { lifecycle: agentLifecycleRef },
    register (ctx) {
      settled = () => ctx.services.lifecycle.settled('tiny')
      ctx.addAgent(agent('tiny', 'Tiny', '1.0.0'))
      // its package says another version than its registry
      ctx.addAgent(agent('liar', 'Liar', '3.0.0'))
    }
  })
  const registry = { NPM_CONFIG_REGISTRY: packages.url, NPM_CONFIG_CACHE: t.testdir() }
  return { settled: () => settled(), registry: packages, plugins: [crew, apiAgents], services: { installer_env: registry } }
}

/** A gateway that sets itself up from a hub of this machine, with engines by the names of the built-in ones. */
export async function installGateway (t: Test, options: InstallOptions = {}): Promise<InstallGateway> {
  const { home = t.testdir(), hub: given, files = {}, svc = '', plugins = [], services = { downloads: false } } = options
  const hub = given ?? await FakeHub.start(t)
  const runtime = new ScriptedRuntime()
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  write('etc/svc/svc.toml', `[models]\nauto_scan_on_start = false\n${svc}`)
  write('etc/svc/api.env', `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\nSVC_BUNDLES_DIR="${home}/bundles"\nSVC_OPENWEBUI_PROBE_URL="http://127.0.0.1:9/health"\n`)
  for (const [path, text] of Object.entries(files)) write(path, text)
  const gateway = await createTestGateway({
    home,
    runtime,
    plugins: [...apiPlugins.filter(({ name }) => name !== 'imagegen' && name !== 'api-comfyui'), ...engines, ...plugins],
    pluginConfig: { 'api-services': { systemctl: '/nonexistent', ...services }, 'pull': { retry_base_s: 0.01, stall_timeout_s: 2, max_tries: 2, reserve_mb: 0 } }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await gateway.fetch(path, {
      method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: text === '' ? null : JSON.parse(text) }
  }
  return Object.assign(gateway, {
    hub,
    call,
    slot: async (name: string, fits: (record: Record<string, unknown> & { metadata: Record<string, unknown> }) => boolean) => {
      await eventually(`slot ${name}`, async () => {
        const { status, json } = await call('GET', `/api/slots/${name}`)
        if (status === 200 && fits(json)) return true
        throw new Error(JSON.stringify(json))
      })
    }
  })
}
