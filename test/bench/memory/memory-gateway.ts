import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import builtins from '../../../plugins/index.js'
import { createGateway } from '../../../kernel/gateway.js'
import { createFakeProviderPlugin, FakeEngineRuntime } from '../../../kernel/testing/index.js'
import type { EngineInspection } from '../../../kernel/contract/provider/engine-runtime.js'
import { TurnWatch } from '../thread-use.js'

/**
 * The gateway as it ships, with its memory on, a chat slot and one that embeds. Asked for `held`, it tells what held its event
 * loop since it was last asked.
 */
const [upstreamPort, home] = [Number(process.argv[2]), process.argv[3]!]

/** What held the event loop, in milliseconds. */
export interface Held {
  /** Longest time from one turn to the next: what other processes took is in it. */
  readonly most: number
  readonly p999: number
  /** Longest time of the processor that the thread used between two turns; null where the system does not tell. */
  readonly used: number | null
}

class PinnedRuntime extends FakeEngineRuntime {
  override async inspect (id: string): Promise<EngineInspection | null> {
    const found = await super.inspect(id)
    return found === null || found.address === null ? found : { ...found, address: { host: '127.0.0.1', port: upstreamPort } }
  }
}

await mkdir(join(home, 'etc/svc/slots'), { recursive: true })
await writeFile(join(home, 'etc/svc/svc.toml'), '[slots]\nautostart = false\n[server]\nlog_level = "warn"\n[memory]\nenabled = true\n')
for (const [name, type] of Object.entries({ agent: 'llm', embed: 'embedding' })) {
  await writeFile(join(home, `etc/svc/slots/${name}.toml`), `type = "${type}"\nprovider = "fake"\ndevice = "cpu"\nidle_timeout_s = 0\n`)
}
const provider = createFakeProviderPlugin({
  surfaces: {
    chat: { path: '/v1/chat/completions', streaming: true, body: 'json' },
    embeddings: { path: '/v1/embeddings', streaming: false, body: 'json' }
  }
})
const gateway = createGateway({ builtins, plugins: [provider], home, port: 0, runtime: new PinnedRuntime() })
const { baseUrl } = await gateway.start()
const loop = monitorEventLoopDelay({ resolution: 1 })
loop.enable()
const turns = new TurnWatch()
process.stdout.write(`${JSON.stringify({ port: Number(new URL(baseUrl).port) })}\n`)
process.on('message', what => {
  if (what !== 'held') return void process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() })
  const held: Held = { most: loop.max / 1e6, p999: loop.percentile(99.9) / 1e6, used: turns.take() }
  loop.reset()
  process.send!(held)
})
process.on('disconnect', () => {
  gateway.hurry()
  void gateway.stop().then(() => process.exit(0))
})
