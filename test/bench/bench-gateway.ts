import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import builtins from '../../plugins/index.js'
import { setHeapFlags } from '../../cli/heap-flags.js'
import { createGateway } from '../../kernel/gateway.js'
import { createFakeProviderPlugin, FakeEngineRuntime } from '../../kernel/testing/index.js'
import type { EngineInspection } from '../../kernel/contract/provider/engine-runtime.js'

/**
 * The gateway as it ships, all default plugins on. Its engines are the bench's upstream, which stands behind two remote upstreams
 * as well: `remote`, and `chained`, whose retries and fallback are never used. Behind `claude` it speaks the Messages API alone.
 */
const [upstreamPort, home] = [Number(process.argv[2]), process.argv[3]!]

setHeapFlags()

class PinnedRuntime extends FakeEngineRuntime {
  override async inspect (id: string): Promise<EngineInspection | null> {
    const found = await super.inspect(id)
    return found === null || found.address === null ? found : { ...found, address: { host: '127.0.0.1', port: upstreamPort } }
  }
}

await mkdir(join(home, 'etc/svc/slots'), { recursive: true })
await writeFile(join(home, 'etc/svc/svc.toml'), '[slots]\nautostart = false\n[server]\nlog_level = "warn"\n')
const types = { agent: 'llm', embed: 'embedding', tts: 'tts', stt: 'transcription' }
for (const [name, type] of Object.entries(types)) {
  await writeFile(join(home, `etc/svc/slots/${name}.toml`), `type = "${type}"\nprovider = "fake"\ndevice = "cpu"\nidle_timeout_s = 0\n`)
}
const row = (name: string, more = '', path = '/v1', auth = 'bearer'): string =>
  `[[upstream]]\nname = "${name}"\nkind = "remote"\nurl = "http://127.0.0.1:${upstreamPort}${path}"\nauth_style = "${auth}"\nauth_value_env = "BENCH_KEY"\nmodel_filters = { models = ["bench"] }\n${more}`
await writeFile(join(home, 'etc/svc/upstreams.toml'), [
  row('remote'), row('chained', 'retries = 2\nfallback = ["remote/bench"]\n'), row('claude', '', '/anthropic/v1', 'anthropic')
].join(''))
await writeFile(join(home, 'etc/svc/api.env'), 'BENCH_KEY=sk-bench-0123456789\n', { mode: 0o600 })
// no engine has a line but the one for texts, so that those that wait for it share calls
const provider = createFakeProviderPlugin({
  concurrency: ({ slot }) => slot.type === 'embedding' ? 1 : null,
  surfaces: {
    chat: { path: '/v1/chat/completions', streaming: true, body: 'json' },
    embeddings: { path: '/v1/embeddings', streaming: false, body: 'json' },
    speech: { path: '/v1/audio/speech', streaming: true, body: 'json' },
    transcription: { path: '/v1/audio/transcriptions', streaming: true, body: 'multipart' }
  }
})
const gateway = createGateway({ builtins, plugins: [provider], home, port: 0, runtime: new PinnedRuntime() })
const { baseUrl, listeningMs } = await gateway.start()
for (const name of Object.keys(types)) await gateway.inference().slots.ensureReady(name, new AbortController().signal)
process.stdout.write(`${JSON.stringify({ port: Number(new URL(baseUrl).port), listeningMs })}\n`)
process.on('message', what => {
  // a collection is no part of what requests cost
  if (what === 'memory') globalThis.gc?.()
  process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() })
})
process.on('disconnect', () => {
  gateway.hurry()
  void gateway.stop().then(() => process.exit(0))
})
