import { join } from 'node:path'
import type { ConfigSnapshot, Paths, PluginReport, RuntimeInfo } from '../../kernel/contract/index.js'
import type { Output } from '../output.js'
import { reasonOf } from '../plugin-report.js'

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
  out.pairs([
    ['runtime', `${runtime.driver}: ${runtime.reason}`],
    ['config', join(paths.etc, 'svc.toml')],
    ['state', paths.state],
    ['plugins', `${plugins.filter(({ state }) => state === 'active').length} active${fallen.length === 0 ? '' : `, ${fallen.length} not`}`]
  ])
  for (const plugin of fallen) out.line(out.paint('yellow', `  ${plugin.name} ${plugin.state}: ${reasonOf(plugin)}`))
  for (const { file, path, message } of config.diagnostics) out.line(out.paint('yellow', `  ${file}: ${path === '' ? '' : `${path} `}${message}`))
  out.line()
  if (chat === null) {
    out.line('There is no slot to talk to yet. Make one: svc slot create agent --model <model>, or start with --demo.')
    return
  }
  out.line(`curl -N ${baseUrl}/v1/chat/completions -H 'content-type: application/json' \\`)
  out.line(`  -d '{"model":"${chat}","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`)
}

/** The slot that the example talks to. */
function chatSlot ({ slots }: ConfigSnapshot): string | null {
  const chats = [...slots.values()].filter(({ type, enabled, model }) => type === 'llm' && enabled && model.default !== null)
  return (chats.find(({ name }) => name === 'agent') ?? chats.find(slot => slot.default) ?? chats[0])?.name ?? null
}
