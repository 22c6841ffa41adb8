import { mkdirSync, writeFileSync } from 'node:fs'
import { readFile, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { createTestGateway, FakeEngineRuntime, type TestGateway } from '../../../../kernel/testing/index.js'
import apiHf from '../../../../plugins/api/hf/index.js'
import apiModels from '../../../../plugins/api/models/index.js'
import hub from '../../../../plugins/services/hub/index.js'
import library from '../../../../plugins/services/library/index.js'
import pull from '../../../../plugins/services/pull/index.js'
import { FakeHub } from '../hub/fake-hub.js'

export interface PullGateway extends TestGateway {
  readonly hub: FakeHub
  readonly store: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  call (method: string, path: string, body?: unknown): Promise<{ status: number, headers: Headers, json: any }>
  /** Resolves when the gateway has received so many bytes. */
  received (id: string, bytes: number): Promise<void>
  /** The snapshot once the pull is over. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  over (id: string): Promise<any>
  /** Relative paths of everything in the store. */
  files (): Promise<string[]>
  /** Types and data of the pull's events. */
  pullEvents (): ReadonlyArray<{ readonly type: string, readonly data: Readonly<Record<string, unknown>> }>
}

export interface PullOptions {
  readonly hub?: FakeHub
  readonly home?: string
  readonly config?: Readonly<Record<string, unknown>>
  readonly token?: string
  readonly store?: string
}

const quick = { retry_base_s: 0.01, stall_timeout_s: 2, max_tries: 4, reserve_mb: 0 }

/** A gateway that pulls from a hub of this machine. Stopped and started again with the same home, it is the same gateway. */
export async function pullGateway (t: Test, options: PullOptions = {}): Promise<PullGateway> {
  const { hub: given, home = t.testdir(), config = {}, token, store } = options
  const fake = given ?? await FakeHub.start(t)
  const runtime = new FakeEngineRuntime()
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  write('etc/svc/svc.toml', `[slots]\nautostart = false\n[models]\nauto_scan_on_start = false\n${store === undefined ? '' : `store = "${store}"\n`}`)
  write('etc/svc/api.env', `HF_ENDPOINT="${fake.url}"\nno_proxy="*"\n${token === undefined ? '' : `HF_TOKEN="${token}"\n`}`)
  const gateway = await createTestGateway({
    home, runtime, plugins: [apiHf, apiModels, hub, library, pull], pluginConfig: { pull: { ...quick, ...config } }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const folder = store ?? join(home, 'var/lib/svc/models')
  const call: PullGateway['call'] = async (method, path, body) => {
    const response = await gateway.fetch(path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
    })
    return { status: response.status, headers: response.headers, json: await response.json() }
  }
  return Object.assign(gateway, {
    hub: fake,
    store: folder,
    call,
    received: async (id: string, bytes: number) => {
      const response = await gateway.fetch(`/api/models/${encodeURIComponent(id)}/pull/stream`)
      const reader = response.body!.getReader()
      let text = ''
      for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
        text += Buffer.from(chunk.value).toString()
        const counts = [...text.matchAll(/"bytes_downloaded":(\d+)/g)].map(([, count]) => Number(count))
        if (counts.some(count => count >= bytes)) return await reader.cancel()
      }
      throw new Error(`the pull of ${id} ended before it had ${bytes} bytes`)
    },
    over: async (id: string) => {
      const response = await gateway.fetch(`/api/models/${encodeURIComponent(id)}/pull/stream`)
      const frames = (await response.text()).split('\n\n').filter(frame => frame.startsWith('data: '))
      return JSON.parse(frames.at(-1)!.slice('data: '.length)) as unknown
    },
    files: async () => (await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []))
      .filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name).slice(folder.length + 1)).sort(),
    pullEvents: () => gateway.gateway.kernel().events.list({ type: 'pull.*', limit: 1000 }).events
  })
}

export async function content (gateway: PullGateway, path: string): Promise<Buffer> {
  return await readFile(join(gateway.store, path))
}
