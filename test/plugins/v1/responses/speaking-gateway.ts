import type { Test } from 'tap'
import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import responseRoutes from '../../../../plugins/v1/responses/index.js'
import { wireGateway, type WireGateway } from '../../../wire/wire-gateway.js'

/** A gateway whose slot `agent` speaks responses itself. */
export async function speaking (t: Test): Promise<WireGateway> {
  const responses = { path: '/v1/responses', streaming: true, body: 'json' } as const
  const gateway = await wireGateway(t, {
    plugins: [createFakeProviderPlugin({ name: 'fluent', surfaces: { responses } }), responseRoutes],
    files: { 'etc/svc/slots/agent.toml': 'type = "llm"\nprovider = "fluent"\ndevice = "cpu"\n[model]\ndefault = "fake-model"\n' }
  })
  await gateway.slots.ensureReady('agent', new AbortController().signal)
  return gateway
}
