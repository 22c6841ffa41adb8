import type { Test } from 'tap'
import type { AnyPlugin, Clock } from '../../../../kernel/contract/index.js'
import { createTestGateway, type TestGateway } from '../../../../kernel/testing/index.js'
import activity from '../../../../plugins/api/activity/index.js'
import apiMemory from '../../../../plugins/api/memory/index.js'
import secrets from '../../../../plugins/api/secrets/index.js'
import settings from '../../../../plugins/api/settings/index.js'
import status from '../../../../plugins/api/status/index.js'
import memory from '../../../../plugins/services/memory/index.js'
import memoryEngine from '../../../../plugins/services/memory-engine/index.js'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
  readonly json: any
}

export interface MemoryHost extends TestGateway {
  call (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** The newest audit rows about the memory, newest first. */
  audit (): Promise<ReadonlyArray<Record<string, unknown>>>
  /** Until a question about the memory has the answer that is waited for. */
  until (path: string, isIt: (json: Answer['json']) => boolean): Promise<Answer>
}

export interface HostOptions {
  /** The address of a Hindsight server; without one the embedded engine. */
  readonly url?: string
  readonly svc?: string
  readonly apiEnv?: string
  readonly pluginConfig?: Readonly<Record<string, Record<string, unknown>>>
  readonly plugins?: readonly AnyPlugin[]
  readonly files?: Readonly<Record<string, string>>
  readonly clock?: Clock
}

export const memoryPlugins: readonly AnyPlugin[] = [activity, apiMemory, memory, memoryEngine, secrets, settings, status]

/** A gateway with a memory that is on. */
export async function memoryHost (t: Test, { url, svc = '', apiEnv, pluginConfig = {}, plugins = [], files = {}, clock }: HostOptions = {}): Promise<MemoryHost> {
  const engine = url === undefined ? '' : `engine = "hindsight"\nurl = "${url}"\n`
  const gateway = await createTestGateway({
    plugins: [...memoryPlugins, ...plugins],
    pluginConfig,
    files: {
      'etc/svc/svc.toml': `[slots]\nautostart = false\n[memory]\nenabled = true\n${engine}${svc}`,
      ...apiEnv === undefined ? {} : { 'etc/svc/api.env': apiEnv },
      ...files
    },
    ...clock === undefined ? {} : { clock }
  })
  t.teardown(() => gateway.close())
  const call: MemoryHost['call'] = async (method, path, body, headers = {}) => {
    const response = await gateway.fetch(path, {
      method,
      headers: { ...body === undefined ? {} : { 'content-type': 'application/json' }, ...headers },
      ...body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) as unknown : null }
  }
  return Object.assign(gateway, {
    call,
    audit: async () => (await call('GET', '/api/activity?category=memory')).json.records as ReadonlyArray<Record<string, unknown>>,
    until: async (path: string, isIt: (json: Answer['json']) => boolean) => {
      for (;;) {
        const answer = await call('GET', path)
        if (isIt(answer.json)) return answer
      }
    }
  })
}
