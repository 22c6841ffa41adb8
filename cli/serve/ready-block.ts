import { join } from 'node:path'
import type { ConfigSnapshot, Paths, PluginReport, RuntimeInfo } from '../../kernel/contract/index.js'
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
  out.line(`${out.paint('bold', `svc ${version}`)} is ready at ${out.paint('green', baseUrl)}`)
  const problems = config.diagnostics.length
  out.pairs([
    ['chat', chat === null ? null : out.told(`svc chat${baseUrl === DEFAULT_BASE ? '' : ` --url ${baseUrl}`}${chat === 'agent' ? '' : ` --slot ${chat}`}`)],
    ['docs', plugins.some(({ name, state }) => name === 'api-docs' && state === 'active') ? `${baseUrl}/api/docs` : null],
    ['engines', engineText(runtime)],
    ['config', join(paths.etc, 'svc.toml')],
    ['state', paths.state],
    ['problems', problems === 0 ? null : out.told(`${problems} in the configuration: svc status${baseUrl === DEFAULT_BASE ? '' : ` --url ${baseUrl}`}`)]
  ])
  for (const plugin of fallen) out.line(out.paint('yellow', `  ${plugin.name} ${plugin.state}: ${reasonOf(plugin)}`))
  out.line()
  if (chat === null) {
    out.line('There is no chat slot yet. Create one with `svc setup` or `svc slot create agent --model <model>`.')
    return
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
  const chats = [...slots.values()].filter(({ type, enabled, model }) => type === 'llm' && enabled && model.default !== null)
  return (chats.find(({ name }) => name === 'agent') ?? chats.find(slot => slot.default) ?? chats[0])?.name ?? null
}
