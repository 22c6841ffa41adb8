import { join } from 'node:path'
import type { Test } from 'tap'
import { liveHome, startLive } from '../../e2e/live-gateway.js'
import { root } from '../../repository.js'
import type { HindsightServer } from './hindsight-server.js'

/** The programs of the rings of the memory. */
export const memoryPrograms = join(root, 'test/rings/memory')

export const memorySettings = '[runtime]\ndriver = "process"\nstop_with_gateway = true\n[slots]\nautostart = false\n[memory]\nenabled = true\n'

/** A gateway whose memory is its own, with the models of the server behind its slots. */
export async function embeddedGateway (t: Test, { models }: Pick<HindsightServer, 'models'>): Promise<string> {
  const slot = (type: string, model: string): string =>
    `type = "${type}"\ndevice = "cpu"\n[model]\ndefault = "${model}"\n[server]\nenv = { RING_MODELS = "${models}" }\n`
  const binary = join(memoryPrograms, 'llama-server.mjs')
  const gateway = await startLive(t, await liveHome(t, {
    'etc/svc/svc.toml': `${memorySettings}[memory.graph]\nenabled = true\n[plugins.config.llm-server]\nprefer = "binary"\nbinary = "${binary}"\n`,
    'etc/svc/slots/agent.toml': slot('llm', 'teller'),
    'etc/svc/slots/embed.toml': slot('embedding', 'minilm'),
    'var/lib/svc/registry/registry.toml': ['teller', 'minilm'].map(name => `[models.${name}]\npath = "/dev/null"\n`).join('')
  }))
  t.teardown(() => gateway.kill('SIGTERM'))
  return gateway.url
}
