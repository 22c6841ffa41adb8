import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { FileOps } from '../../../kernel/config/files/atomic-file.js'
import type { AnyPlugin, Clock } from '../../../kernel/contract/index.js'
import type { LogOptions, PullProgress } from '../../../kernel/contract/provider/engine-runtime.js'
import {
  createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type FakeEngineRuntimeOptions, type TestGateway
} from '../../../kernel/testing/index.js'
import activity from '../../../plugins/api/activity/index.js'
import backends from '../../../plugins/api/backends/index.js'
import capabilities from '../../../plugins/api/capabilities/index.js'
import chatTemplates from '../../../plugins/api/chat-templates/index.js'
import comfyui from '../../../plugins/api/comfyui/index.js'
import config from '../../../plugins/api/config/index.js'
import docs from '../../../plugins/api/docs/index.js'
import events from '../../../plugins/api/events/index.js'
import hardware from '../../../plugins/api/hardware/index.js'
import hf from '../../../plugins/api/hf/index.js'
import install from '../../../plugins/api/install/index.js'
import journal from '../../../plugins/api/journal/index.js'
import logs from '../../../plugins/api/logs/index.js'
import meta from '../../../plugins/api/meta/index.js'
import modelStore from '../../../plugins/api/model-store/index.js'
import models from '../../../plugins/api/models/index.js'
import npu from '../../../plugins/api/npu/index.js'
import plugins from '../../../plugins/api/plugins/index.js'
import profiles from '../../../plugins/api/profiles/index.js'
import proxmox from '../../../plugins/api/proxmox/index.js'
import requests from '../../../plugins/api/requests/index.js'
import secrets from '../../../plugins/api/secrets/index.js'
import services from '../../../plugins/api/services/index.js'
import settings from '../../../plugins/api/settings/index.js'
import slots from '../../../plugins/api/slots/index.js'
import stacks from '../../../plugins/api/stacks/index.js'
import stats from '../../../plugins/api/stats/index.js'
import status from '../../../plugins/api/status/index.js'
import updatesApi from '../../../plugins/api/updates/index.js'
import upstreams from '../../../plugins/api/upstreams/index.js'
import user from '../../../plugins/api/user/index.js'
import { shippedFacts } from '../../providers.js'
import imagegen from '../../../plugins/providers/imagegen/index.js'
import agents from '../../../plugins/services/agents/index.js'
import agentPersonas from '../../../plugins/services/agent-personas/index.js'
import companions from '../../../plugins/services/companions/index.js'
import remoteCatalog from '../../../plugins/providers/remote-catalog/index.js'
import updates from '../../../plugins/services/updates/index.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import capabilityFile from '../../../plugins/services/capabilities/index.js'
import memoryEngine from '../../../plugins/services/memory-engine/index.js'
import memory from '../../../plugins/services/memory/index.js'
import stackCatalog from '../../../plugins/services/stack-catalog/index.js'
import pull from '../../../plugins/services/pull/index.js'

export const apiPlugins: readonly AnyPlugin[] = [
  activity,
  agentPersonas,
  agents,
  backends,
  capabilities,
  chatTemplates,
  comfyui,
  companions,
  config,
  docs,
  events,
  hardware,
  hf,
  hub,
  imagegen,
  install,
  journal,
  library,
  logs,
  memory,
  memoryEngine,
  meta,
  models,
  modelStore,
  npu,
  plugins,
  profiles,
  proxmox,
  pull,
  remoteCatalog,
  requests,
  secrets,
  services,
  settings,
  slots,
  capabilityFile,
  stackCatalog,
  stacks,
  stats,
  status,
  updates,
  updatesApi,
  upstreams,
  user
]

type Progress = (progress: PullProgress) => void

/** Engines that write what the test says, and images that arrive when the test says. */
export class ScriptedRuntime extends FakeEngineRuntime {
  /** Lines of every engine, the ones to come included. Following readers wait for `write`. */
  readonly lines: string[] = []
  present = true
  logFailure: Error | null = null
  /** Readers of logs that have not left. */
  readers = 0
  /** Steps and end of the pull that runs. */
  pulling: { readonly step: Progress, readonly finish: (error?: Error) => void } | null = null
  #wake: Array<() => void> = []

  write (...lines: string[]): void {
    this.lines.push(...lines)
    for (const wake of this.#wake.splice(0)) wake()
  }

  override imagePresent (): Promise<boolean> { return Promise.resolve(this.present) }

  override pull (...args: unknown[]): Promise<void> {
    const step = args[2] as Progress
    return new Promise((resolve, reject) => {
      this.pulling = {
        step,
        finish: error => {
          this.present = error === undefined
          if (error === undefined) resolve()
          else reject(error)
        }
      }
    })
  }

  override async* logs (id: string, { tail, follow, signal }: LogOptions): AsyncGenerator<string> {
    if (this.logFailure !== null) throw this.logFailure
    this.readers++
    try {
      let at = Math.max(0, this.lines.length - tail)
      for (;;) {
        while (at < this.lines.length) yield this.lines[at++]!
        const running = (await this.inspect(id))?.state === 'running'
        if (!follow || signal.aborted || !running) return
        await new Promise<void>(resolve => {
          this.#wake.push(resolve)
          signal.addEventListener('abort', () => resolve(), { once: true })
          const unsubscribe = this.onExit('', () => {
            unsubscribe()
            resolve()
          })
        })
      }
    } finally {
      this.readers--
    }
  }
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly json: any
}

export interface Api extends TestGateway {
  readonly runtime: ScriptedRuntime
  call (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  file (path: string): Promise<string>
  /** The newest audit rows, newest first. */
  audit (): ReadonlyArray<Record<string, unknown>>
}

export interface ApiOptions extends FakeEngineRuntimeOptions {
  readonly files?: Readonly<Record<string, string>>
  readonly svc?: string
  readonly providers?: readonly AnyPlugin[]
  /** Instead of all of them. */
  readonly group?: readonly AnyPlugin[]
  /** A recorded machine, and the environment of the gateway. */
  readonly machine?: { readonly root: string, readonly env?: Readonly<Record<string, string>> }
  readonly deviceNodes?: readonly string[]
  readonly fileOps?: FileOps
  readonly clock?: Clock
}

export const AGENT = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\nport = 8081\n[model]\ndefault = "fake-model"\n'
export const REGISTRY = '[models.fake-model]\npath = "/dev/null"\n[models.other-model]\npath = "/dev/null"\nsize_bytes = 1572864\n'

/** A gateway with the whole group, slot `agent`, two models, and engines that do as the test says. */
export async function api (t: Test, {
  files = {}, svc = '', providers, group = apiPlugins, machine, deviceNodes, fileOps, clock, ...runtimeOptions
}: ApiOptions = {}): Promise<Api> {
  const runtime = new ScriptedRuntime(runtimeOptions)
  const gateway = await createTestGateway({
    runtime,
    ...(machine === undefined ? {} : { hardwareRoot: machine.root, env: machine.env ?? {} }),
    ...(deviceNodes === undefined ? {} : { deviceNodes }),
    ...(fileOps === undefined ? {} : { fileOps }),
    ...(clock === undefined ? {} : { clock }),
    // nothing is brought from registries, and no systemd of this machine is asked
    pluginConfig: { 'api-services': { downloads: false, systemctl: '/nonexistent' } },
    plugins: [...group, ...providers ?? [createFakeProviderPlugin(shippedFacts('imagegen'))]],
    files: {
      'etc/svc/svc.toml': `[slots]\nautostart = false\n${svc}`,
      'etc/svc/slots/agent.toml': AGENT,
      'var/lib/svc/registry/registry.toml': REGISTRY,
      ...files
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    call: async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
      const response = await gateway.fetch(path, {
        method,
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) })
      })
      const text = await response.text()
      if (response.headers.get('x-request-id') === null) throw new Error(`${method} ${path} has no request id`)
      const isJson = response.headers.get('content-type')?.startsWith('application/json') === true && text !== ''
      return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : null }
    },
    file: (path: string) => readFile(join(gateway.home, path), 'utf8'),
    audit: () => gateway.gateway.kernel().activity.list({ limit: 50, kind: 'action' }) as unknown as ReadonlyArray<Record<string, unknown>>
  })
}

/** Plugins of the group by their names. */
export function groupOf (...names: readonly string[]): readonly AnyPlugin[] {
  return names.map(name => {
    const plugin = apiPlugins.find(plugin => plugin.name === name)
    if (plugin === undefined) throw new Error(`no plugin of the group is named ${name}`)
    return plugin
  })
}

/** The same with these plugins of the group alone: it starts in a third of the time. */
export function apiOf (...names: readonly string[]): typeof api {
  const group = groupOf(...names)
  return (t, options = {}) => api(t, { group, ...options })
}

/** Asks for what must be refused, and looks at how. */
export async function refused (
  t: Test, gateway: Api, [method, path, body]: readonly [string, string, unknown?], status: number, code: string, message = /./
): Promise<Answer> {
  const answer = await gateway.call(method, path, body)
  t.equal(answer.status, status, `${method} ${path}: ${answer.text}`)
  t.match(answer.json, { error: { code, message } }, `${method} ${path}: ${code}`)
  return answer
}

export interface Frame {
  readonly event: string
  readonly id: string | null
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  readonly data: any
}

/** An open event stream: frames one by one; `close` is the client that leaves. */
export interface Stream {
  readonly response: Response
  /** The next frame; null when the stream ended. */
  next (): Promise<Frame | null>
  /** Frames until one fits. */
  until (fits: (frame: Frame) => boolean): Promise<Frame>
  close (): Promise<void>
}

export async function openStream (
  t: Test, gateway: TestGateway, path: string, headers: Record<string, string> = {}
): Promise<Stream> {
  const controller = new AbortController()
  const response = await gateway.fetch(path, { headers, signal: controller.signal })
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let buffer = ''
  const next = async (): Promise<Frame | null> => {
    for (;;) {
      const end = buffer.indexOf('\n\n')
      if (end !== -1) {
        const block = buffer.slice(0, end)
        buffer = buffer.slice(end + 2)
        if (!block.startsWith(':')) return parseFrame(block)
        continue
      }
      const { done, value } = await reader.read()
      if (done) return null
      buffer += decoder.decode(value, { stream: true })
    }
  }
  const close = async (): Promise<void> => {
    await reader.cancel().catch(() => {})
    controller.abort()
  }
  t.teardown(close)
  return {
    response,
    next,
    close,
    until: async fits => {
      for (;;) {
        const frame = await next()
        if (frame === null) throw new Error(`${path} ended before the frame that was waited for`)
        if (fits(frame)) return frame
      }
    }
  }
}

function parseFrame (block: string): Frame {
  const field = (name: string): string | null =>
    block.split('\n').find(line => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null
  return { event: field('event') ?? 'message', id: field('id'), data: JSON.parse(field('data') ?? 'null') }
}

/** Turns of the event loop that what needs no more than work here takes. */
const TURNS = 20

/**
 * Resolves when `condition` holds; looks again after every turn of the event loop, later every 2 ms: what a program or
 * a timer brings about comes no sooner where the processor is kept busy with looking.
 */
export async function until (condition: () => boolean, what: string): Promise<void> {
  const end = performance.now() + 120_000
  for (let turns = 0; !condition(); turns++) {
    if (performance.now() > end) throw new Error(`it did not come about: ${what}`)
    await new Promise(resolve => { if (turns < TURNS) setImmediate(resolve); else setTimeout(resolve, 2) })
  }
}
