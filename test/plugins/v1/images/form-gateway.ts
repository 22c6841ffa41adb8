import type { Test } from 'tap'
import { createFakeProviderPlugin, createTestGateway, FakeEngineRuntime, type TestGateway } from '../../../../kernel/testing/index.js'
import images from '../../../../plugins/api/images/index.js'
import library from '../../../../plugins/services/library/index.js'
import imageRoutes from '../../../../plugins/v1/images/index.js'
import { fakeUpstream, upstreamTable, type FakeUpstream } from '../../../wire/fake-upstream.js'

export interface FormGateway {
  readonly gateway: TestGateway
  readonly runtime: FakeEngineRuntime
  readonly upstream: FakeUpstream
  /** What both answer. */
  readonly answer: string
}

/** A gateway whose slot `img` takes edits as forms, and whose upstream `up` has `gpt-image-9`. */
export async function formGateway (t: Test): Promise<FormGateway> {
  const upstream = await fakeUpstream(t, ['gpt-image-9'])
  const answer = JSON.stringify({ created: 1, data: [{ b64_json: 'eA==' }] })
  const script = { headers: { 'content-type': 'application/json' }, chunks: [answer] }
  upstream.play(script)
  const runtime = new FakeEngineRuntime({ onStart: ({ engine }) => engine.answer(script) })
  const surfaces = { 'image-edit': { path: '/edit', streaming: true, body: 'multipart' } } as const
  const gateway = await createTestGateway({
    runtime,
    plugins: [createFakeProviderPlugin({ surfaces }), imageRoutes, images, library],
    files: {
      'etc/svc/upstreams.toml': upstreamTable('up', upstream.url),
      'etc/svc/slots/img.toml': 'type = "image"\nprovider = "fake"\ndevice = "cpu"\n[model]\ndefault = "painter"\n',
      'var/lib/svc/registry/registry.toml': '[models.painter]\npath = "/dev/null"\n'
    }
  })
  t.teardown(async () => {
    await gateway.close()
    await runtime.destroy()
  })
  return { gateway, runtime, upstream, answer }
}
