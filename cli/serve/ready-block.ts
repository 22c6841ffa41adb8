import { join } from 'node:path'
import type { ConfigSnapshot, NamedSlotConfig, Paths, PluginReport, RuntimeInfo } from '../../kernel/contract/index.js'
import { DEFAULT_BASE } from '../client/target.js'
import type { Output } from '../terminal/output.js'
import { reasonOf } from '../record/plugin-report.js'

export interface ReadyFacts {
  readonly version: string
  readonly baseUrl: string
  readonly runtime: RuntimeInfo
  readonly plugins: readonly PluginReport[]
  readonly config: ConfigSnapshot
  readonly paths: Pick<Paths, 'etc' | 'state'>
}

/** What the one who started it wants to know, once. */
export function printReady (out: Output, facts: ReadyFacts): void {
  const { version, baseUrl, runtime, plugins, config, paths } = facts
  const fallen = plugins.filter(({ state }) => state === 'failed' || state === 'skipped')
  const chat = chatSlot(config)
  const elsewhere = baseUrl === DEFAULT_BASE ? '' : ` --url ${baseUrl}`
  out.line(`${out.paint('bold', `svc ${version}`)} is ready at ${out.paint('green', baseUrl)}`)
  const problems = config.diagnostics.length
  out.pairs([
    ['chat', chat === null ? null : out.told(`svc chat${elsewhere}${chat === 'agent' ? '' : ` --slot ${chat}`}`)],
    ['docs', plugins.some(({ name, state }) => name === 'api-docs' && state === 'active') ? `${baseUrl}/api/docs` : null],
    ['engines', engineText(runtime)],
    ['config', join(paths.etc, 'svc.toml')],
    ['state', paths.state],
    ['problems', problems === 0 ? null : out.told(`${problems} in the configuration: svc status${elsewhere}`)]
  ])
  for (const plugin of fallen) out.line(out.paint('yellow', `  ${plugin.name} ${plugin.state}: ${reasonOf(plugin)}`))
  out.line()
  if (chat === null) {
    const waiting = waitingSlot(config)
    return out.line(waiting === null
      ? 'There is no chat slot yet. Create one with `svc setup` or `svc slot create agent --model <model>`.'
      : `Slot '${waiting.name}' waits for its model. Download it with \`svc model pull ${waiting.model}${elsewhere}\`.`)
  }
  // no line is as wide as the narrowest usual terminal, so that what is copied from it is what was printed
  out.lines([
    `curl -N ${baseUrl}/v1/chat/completions \\`,
    '  -H \'content-type: application/json\' \\',
    `  -d '{"model":"${chat}","stream":true,`,
    '    "messages":[{"role":"user","content":"Hello"}]}\''
  ])
}

/** In a few words; `svc status` has the reasons. */
function engineText ({ driver, version }: RuntimeInfo): string {
  if (driver === 'process') return 'child processes, no container engine'
  return `containers of ${driver === 'podman' ? 'Podman' : 'Docker'} ${version}`.trimEnd()
}

/** The slot that the example talks to. */
function chatSlot ({ slots }: ConfigSnapshot): string | null {
  return preferred([...slots.values()].filter(({ type, enabled, model }) => type === 'llm' && enabled && model.default !== null))?.name ?? null
}

/** The slot that the example would talk to if its model were there. */
function waitingSlot ({ slots }: ConfigSnapshot): { readonly name: string, readonly model: string } | null {
  const slot = preferred([...slots.values()].filter(({ type, model, meta }) => type === 'llm' && model.default === null && meta?.pending_model != null))
  return slot === undefined ? null : { name: slot.name, model: slot.meta!.pending_model! }
}

function preferred (slots: readonly NamedSlotConfig[]): NamedSlotConfig | undefined {
  return slots.find(({ name }) => name === 'agent') ?? slots.find(slot => slot.default) ?? slots[0]
}
