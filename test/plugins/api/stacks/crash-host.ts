import { createFakeProviderPlugin } from '../../../../kernel/testing/index.js'
import type { AnyPlugin } from '../../../../kernel/contract/index.js'
import capabilities from '../../../../plugins/api/capabilities/index.js'
import stacks from '../../../../plugins/api/stacks/index.js'
import capabilityFile from '../../../../plugins/services/capabilities/index.js'
import stackCatalog from '../../../../plugins/services/stack-catalog/index.js'
import library from '../../../../plugins/services/library/index.js'

const ENGINE = `require('node:http').createServer((_, answer) => answer.end('{}')).listen(Number(process.argv[1]), '127.0.0.1')`

/** Stacks, and engines that are processes of their own, so that they outlive a gateway that is killed. */
export const plugins: readonly AnyPlugin[] = [
  capabilities,
  library,
  capabilityFile,
  stackCatalog,
  stacks,
  createFakeProviderPlugin({
    name: 'llm-server',
    family: 'llm-server',
    slotTypes: ['llm', 'embedding'],
    defaultFor: [{ type: 'llm' }, { type: 'embedding' }],
    needsModel: true,
    processSpec: ({ port }) => [{ command: 'node', args: ['-e', ENGINE, String(port)], label: 'engine' }]
  })
]

/** Two slots that run, and a stack that names one of them, another one, and a capability. Ports begin at `base`. */
export function homeFiles (base: number): Record<string, string> {
  const slot = (port: number, model: string): string =>
    `# by hand\nprovider = "llm-server"\ndevice = "cpu"\nport = ${port}\n[model]\ndefault = "${model}"\n`
  return {
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nport_range_start = ${base + 2}\nport_range_end = ${base + 18}\n`,
    'etc/svc/hardware.json': '{"probed_at":"2026-01-01T00:00:00Z","ram_mb":65536}',
    'etc/svc/slots/agent.toml': slot(base, 'first'),
    'etc/svc/slots/old.toml': slot(base + 1, 'first'),
    'etc/svc/stacks.toml': '[stack.mine]\nname = "Mine"\n' +
      '[stack.mine.profiles.fresh]\nimage = "example.com/x:1"\ndevice_class = "cpu"\n' +
      '[[stack.mine.slots]]\nslot = "agent"\nmodel = "second"\nprofile = "fresh"\n' +
      'capabilities = [ { child = "embed", device = "cpu", model = "vectors" } ]\n' +
      '[[stack.mine.slots]]\nslot = "helper"\nmodel = "first"\ndevice = "cpu"\n',
    'var/lib/svc/registry/registry.toml': ['first', 'second'].map(id => `[models.${id}]\npath = "/dev/null"\ncapabilities = ["chat"]\n`).join('') +
      '[models.vectors]\npath = "/dev/null"\ncapabilities = ["embed"]\n'
  }
}
