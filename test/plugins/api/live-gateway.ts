import type { Test } from 'tap'
import { svcSchema } from '../../../cli/offline/svc-schema.js'
import type { PullProgress } from '../../../kernel/contract/provider/engine-runtime.js'
import {
  createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type EngineScript, type TestGateway, type TestGatewayOptions
} from '../../../kernel/testing/index.js'
import activity from '../../../plugins/api/activity/index.js'
import plugins from '../../../plugins/api/plugins/index.js'
import settings from '../../../plugins/api/settings/index.js'
import { settingKeys, settingsSchema } from '../../../plugins/api/settings/setting-keys.js'
import slots from '../../../plugins/api/slots/index.js'
import modelRoutes from '../../../plugins/v1/models/index.js'
import textRoutes from '../../../plugins/v1/text/index.js'

/**
 * Proofs that a live setting is live: it is changed through `PUT /api/settings` while the gateway runs, and what it governs
 * is seen to change.
 */
export interface Live extends TestGateway {
  readonly runtime: ControlledRuntime
  change (patch: object): Promise<void>
  post (path: string, body?: unknown): Promise<Response>
  chat (stream?: boolean, words?: string): Promise<Response>
}

/** Engines that do nothing until they are told to. */
export class ControlledRuntime extends FakeEngineRuntime {
  hangs: 'pull' | 'start' | null = null
  answerWith: EngineScript | null = null
  readonly stopTimeouts: number[] = []
  #goOn = (): void => {}

  /** Ends a start that hangs well. */
  goOn (): void { this.#goOn() }

  override imagePresent (): Promise<boolean> { return Promise.resolve(this.hangs !== 'pull') }

  override pull (...args: unknown[]): Promise<void> {
    const [, , progress, signal] = args as [string, string | null, (progress: PullProgress) => void, AbortSignal]
    progress({ layer: 0, totalLayers: 1, currentBytes: 0, totalBytes: 1, message: 'pulling' })
    return aborted(signal)
  }

  override async start (id: string, signal?: AbortSignal): Promise<void> {
    if (this.hangs === 'start') await Promise.race([aborted(signal!), new Promise<void>(resolve => { this.#goOn = resolve })])
    await super.start(id)
    if (this.answerWith !== null) this.engine('chat').answer(this.answerWith)
  }

  override stop (id: string, timeoutS?: number): Promise<void> {
    this.stopTimeouts.push(timeoutS!)
    return super.stop(id)
  }
}

function aborted (signal: AbortSignal): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

export interface LiveOptions extends TestGatewayOptions { readonly svc?: string }

export async function live (t: Test, { svc = '', files = {}, plugins: more = [], ...options }: LiveOptions = {}): Promise<Live> {
  const runtime = new ControlledRuntime()
  const gateway = await createTestGateway({
    runtime,
    plugins: [activity, plugins, settings, slots, textRoutes, modelRoutes, createFakeProviderPlugin(), ...more],
    files: {
      'etc/svc/svc.toml': `[slots]\nautostart = false\n${svc}`,
      'etc/svc/slots/chat.toml': 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n',
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\npath = "/dev/null"\n',
      ...files
    },
    ...options
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  const send = (method: string, path: string, body?: unknown): Promise<Response> => gateway.fetch(path, {
    method, ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })
  })
  return Object.assign(gateway, {
    runtime,
    change: async (patch: object) => {
      const response = await send('PUT', '/api/settings', patch)
      const { _svc: saved } = await response.json() as { _svc: { apply_plan: { live: string[], gateway_restart: string[] } } }
      t.equal(response.status, 200)
      t.ok(saved.apply_plan.live.length > 0 && saved.apply_plan.gateway_restart.length === 0, `in force: ${saved.apply_plan.live.join(', ')}`)
    },
    post: (path: string, body?: unknown) => send('POST', path, body),
    chat: (stream = false, words = '') =>
      send('POST', '/v1/chat/completions', { model: 'chat', stream, messages: [{ role: 'user', content: words }] })
  })
}

/** Turns of the event loop in which everything that waits for no timer goes on. */
const TURNS = 50

/** Whether a promise has settled once everything that can go on did so. */
export async function settled (promise: Promise<unknown>): Promise<boolean> {
  let done = false
  promise.then(() => { done = true }, () => { done = true })
  for (let n = 0; n < TURNS && !done; n++) await new Promise(resolve => { setImmediate(resolve) })
  return done
}

/** Proofs of one file. `complete` fails for a live key of its tables that has none. */
export class Proofs {
  readonly #keys = new Set<string>()

  prove (t: Test, key: string, proof: (t: Test) => Promise<void>): void {
    this.#keys.add(key)
    t.test(key, proof)
  }

  complete (t: Test, ofTable: (table: string) => boolean, elsewhere: readonly string[] = []): void {
    const live = [...settingKeys(settingsSchema(svcSchema, []))].filter(([key, apply]) => apply === 'live' && ofTable(key.split('.', 1)[0]!))
    t.same([...this.#keys, ...elsewhere].sort(), live.map(([key]) => key).sort())
  }
}
