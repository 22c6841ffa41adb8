import { execFile, spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { bigramGguf } from '../../../plugins/services/demo/bigram-gguf.js'
import { api, chat, liveHome, startLive, writeHome, type LiveGateway } from '../../e2e/live-gateway.js'
import { eventually } from '../../kernel/runtime/support.js'
import { pathOf, type Cluster } from '../support/cluster.js'

export const LLAMA = process.env.SVC_TEST_LLAMA_IMAGE ?? 'svc-test/llama:latest'
export const NAMESPACE = 'svc-ring'
export const ENGINES = 'svc.local/engine'
export const UP = /^(?:ready|serving)$/

export interface Slot { readonly state: string, readonly metadata: { readonly message: string } }

export type Refused = { readonly error: { readonly message: string, readonly details: { readonly reason: string } } }

export interface Home {
  readonly home: string
  readonly start: (env?: Readonly<Record<string, string>>) => Promise<LiveGateway>
}

/** Slots with llama-server on the CPU, reached by the address of the pod. */
export async function clusterHome (t: Test, { kubeconfig }: Pick<Cluster, 'kubeconfig'>, slots: Readonly<Record<string, string>>, cluster = ''): Promise<Home> {
  const home = await liveHome(t, {
    'var/lib/svc/models/demo.gguf': bigramGguf(),
    'var/lib/svc/models/endless.gguf': bigramGguf({ cycle: true, contextLength: 32_768 })
  })
  const models = `${home}/var/lib/svc/models`
  await writeHome(home, {
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[runtime.kubernetes]\nkubeconfig = "${kubeconfig}"\nnamespace = "${NAMESPACE}"\n${cluster}[slots]\nautostart = false\nstop_timeout_s = 3\n`,
    'var/lib/svc/registry/registry.toml': `[models.demo]\npath = "${models}/demo.gguf"\n[models.endless]\npath = "${models}/endless.gguf"\n`,
    ...Object.fromEntries(Object.entries(slots).map(([name, text]) => [`etc/svc/slots/${name}.toml`, text]))
  })
  return { home, start: env => startLive(t, home, env) }
}

export function slotFile ({ model = 'demo', image = LLAMA, extra = '', options = '' } = {}): string {
  return `device = "cpu"\nruntime = "kubernetes"\nimage = "${image}"\nidle_timeout_s = 0\n[model]\ndefault = "${model}"\ncontext_size = 4096\n${extra}[runtime_options]\nresources = { requests = { cpu = "50m", memory = "32Mi" } }\n${options}`
}

export const slotOf = async (gateway: LiveGateway, name: string): Promise<Slot> => (await api(gateway, 'GET', `/api/slots/${name}`)).json as Slot

/** Of engines, with their kind. */
export async function podsOf ({ kubectl }: Cluster): Promise<string[]> {
  return (await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', ENGINES, '-o', 'name')).split('\n').filter(line => line !== '')
}

/** A test that leaves no engine to the next one, also when it fails. */
export async function row (
  t: Test, here: Cluster, name: string, work: (t: Test, here: Cluster) => Promise<void>, skip: string | false = false
): Promise<void> {
  await t.test(name, { skip }, t => work(t, here))
  if (skip === false) await here.kubectl('-n', NAMESPACE, 'delete', 'pods', '-l', ENGINES, '--ignore-not-found', '--grace-period=1')
}

/** Of a stream; lines that keep it alive while an engine loads are none of it. Throws when it ends before. */
export async function firstWords (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  while (!/^data: /m.test(text)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`the stream ended: ${text}`)
    text += decoder.decode(value, { stream: true })
  }
  return text
}

/** A stream that an engine answers, and that lasts until it is left; `grows` waits for more of it. */
export async function endlessStream (gateway: LiveGateway): Promise<{ grows: () => Promise<boolean>, leave: () => void }> {
  const controller = new AbortController()
  const response = await chat(gateway.url, { model: 'endless', stream: true, max_tokens: 10_000_000 }, controller.signal)
  const reader = response.body!.getReader()
  await firstWords(reader)
  return {
    grows: async () => {
      for (let i = 0; i < 20; i++) if ((await reader.read()).done) return false
      return true
    },
    leave: () => controller.abort()
  }
}

export async function drains ({ grows }: { grows: () => Promise<boolean> }): Promise<boolean> {
  for (;;) if (!await grows().catch(() => false)) return false
}

export interface ClusterProcess {
  readonly kill: () => Promise<void>
  /** Anew, by its own words. */
  readonly start: () => void
}

/** A program of the cluster, by the name of its file with the pid. It runs after the test, too. */
export function programOf (t: Test, folder: string, name: string): ClusterProcess {
  const file = join(folder, `run/${name}.pid`)
  const pid = Number(readFileSync(file, 'utf8'))
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').filter(word => word !== '')
  let isDown = false
  const start = (): void => {
    const child = spawn(words[0]!, words.slice(1), { detached: true, stdio: 'ignore', env: { ...process.env, PATH: pathOf(folder) } })
    child.unref()
    writeFileSync(file, String(child.pid))
    isDown = false
  }
  t.teardown(() => { if (isDown) start() })
  return {
    kill: async () => {
      process.kill(pid, 'SIGKILL')
      isDown = true
      await eventually(`${name} is gone`, () => !existsSync(`/proc/${pid}`))
    },
    start
  }
}

/** The pod whose engine listens on a port, with its kind. */
export async function podAt ({ kubectl }: Pick<Cluster, 'kubectl'>, port: number): Promise<string> {
  const template = 'jsonpath={range .items[*]}pod/{.metadata.name} {.spec.containers[0].ports[0].containerPort}{"\\n"}{end}'
  const ports = await kubectl('-n', NAMESPACE, 'get', 'pods', '-l', ENGINES, '-o', template)
  return ports.split('\n').map(line => line.split(' ')).find(([, own]) => Number(own) === port)![0]!
}

/**
 * The process of an engine, on this machine.
 * @param pod with its kind, as `podsOf` gives it
 */
export async function engineProcess ({ folder, kubectl }: Cluster, pod: string): Promise<number> {
  const id = (await kubectl('-n', NAMESPACE, 'get', pod, '-o', 'jsonpath={.status.containerStatuses[0].containerID}')).replace(/^.*\/\//, '')
  const { stdout } = await promisify(execFile)('ctr', ['-a', join(folder!, 'run/cd.sock'), '-n', 'k8s.io', 'tasks', 'ls'])
  return Number(stdout.split('\n').find(line => line.startsWith(id))!.split(/\s+/)[1])
}

/** Objects as JSON, applied as they are. */
export async function apply ({ kubectl }: Pick<Cluster, 'kubectl'>, folder: string, ...objects: readonly object[]): Promise<void> {
  const file = join(folder, `objects-${Math.random().toString(36).slice(2)}.json`)
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  await kubectl('apply', '-f', file)
}

/** The error of a load. */
export async function loadError (gateway: LiveGateway, name: string): Promise<Refused['error']> {
  return ((await api(gateway, 'POST', `/api/slots/${name}/load`, {})).json as Refused).error
}
