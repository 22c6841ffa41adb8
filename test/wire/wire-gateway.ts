import type { Test } from 'tap'
import textRoutes from '../../plugins/v1/text/index.js'
import modelRoutes from '../../plugins/v1/models/index.js'
import {
  createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type StartedEngine, type TestGateway, type TestGatewayOptions
} from '../../kernel/testing/index.js'

export interface WireGateway extends TestGateway {
  readonly runtime: FakeEngineRuntime
  /** Posts a chat request; `stream` and the words of the user as given. */
  chat (body: Record<string, unknown>, signal?: AbortSignal): Promise<Response>
}

export interface WireOptions extends TestGatewayOptions {
  readonly onStart?: (started: StartedEngine) => void | Promise<void>
  readonly svc?: string
  /** One that another gateway has used; it is not ended with this one. */
  readonly runtime?: FakeEngineRuntime
}

const SLOT = 'type = "llm"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n'

/** A gateway with the `/v1` text routes and slot `agent` on a fake engine behind a real socket. */
export async function wireGateway (
  t: Test, { onStart, svc = '', files = {}, plugins = [], runtime: given, ...rest }: WireOptions = {}
): Promise<WireGateway> {
  const runtime = given ?? new FakeEngineRuntime(onStart === undefined ? {} : { onStart })
  const gateway = await createTestGateway({
    runtime,
    plugins: [createFakeProviderPlugin(), textRoutes, modelRoutes, ...plugins],
    files: {
      'etc/svc/svc.toml': `[slots]\nautostart = false\n${svc}`,
      'etc/svc/slots/agent.toml': SLOT,
      'var/lib/svc/registry/registry.toml': '[models.fake-model]\nname = "Fake"\npath = "/dev/null"\n',
      ...files
    },
    ...rest
  })
  t.teardown(async () => {
    await gateway.close()
    if (given === undefined) await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    chat: (body: Record<string, unknown>, signal?: AbortSignal) => fetch(`${gateway.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'hi' }], ...body }),
      ...(signal === undefined ? {} : { signal })
    })
  })
}

/** Resolves when `condition` holds; looks again after every turn of the event loop, for at most `ms`. */
export async function until (condition: () => boolean, what: string, ms = 120_000): Promise<void> {
  const end = performance.now() + ms
  while (!condition()) {
    if (performance.now() > end) throw new Error(`it did not come about within ${ms} ms: ${what}`)
    await new Promise(resolve => { setTimeout(resolve, 2) })
  }
}

/** Reads a stream until `stop` says so about what was read so far; then leaves it. */
export async function readUntil (response: Response, stop: (text: string) => boolean): Promise<string> {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    text += decoder.decode(value, { stream: true })
    if (stop(text)) {
      await reader.cancel()
      return text
    }
  }
}
