import type { Test } from 'tap'
import type { AnyPlugin, EngineProvider } from '../../../../kernel/contract/index.js'
import {
  createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type StartedEngine, type TestGateway
} from '../../../../kernel/testing/index.js'
import audioRoutes from '../../../../plugins/v1/audio/index.js'

export interface AudioGateway extends TestGateway {
  readonly runtime: FakeEngineRuntime
  speak (body: unknown, signal?: AbortSignal): Promise<Response>
}

export interface AudioOptions {
  readonly provider?: Partial<EngineProvider>
  readonly plugins?: readonly AnyPlugin[]
  readonly onStart?: (started: StartedEngine) => void | Promise<void>
  readonly svc?: string
  /** Slot files by name, besides `tts`. */
  readonly slots?: Readonly<Record<string, string>>
  readonly files?: Readonly<Record<string, string>>
}

/** A gateway with the audio routes and the slots that a test names, each on a fake engine behind a real socket. */
export async function audioGateway (
  t: Test, { provider = {}, plugins = [], onStart, svc = '', slots = {}, files = {} }: AudioOptions = {}
): Promise<AudioGateway> {
  const runtime = new FakeEngineRuntime(onStart === undefined ? {} : { onStart })
  const gateway = await createTestGateway({
    runtime,
    plugins: [createFakeProviderPlugin(provider), audioRoutes, ...plugins],
    files: {
      'etc/svc/svc.toml': `[slots]\nautostart = false\n${svc}`,
      ...Object.fromEntries(Object.entries(slots).map(([name, text]) => [`etc/svc/slots/${name}.toml`, text])),
      ...files
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return Object.assign(gateway, {
    runtime,
    speak: (body: unknown, signal?: AbortSignal) => gateway.fetch('/v1/audio/speech', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal === undefined ? {} : { signal })
    })
  })
}

export function fakeSlot (type: string, more = ''): string {
  return `type = "${type}"\nprovider = "fake"\ndevice = "cpu"\n${more}`
}
