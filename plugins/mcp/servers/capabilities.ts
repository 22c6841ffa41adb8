import type { ToolServerInfo } from 'svc-gateway/plugin'

/** What a server says that it can do. Every server has tools, which come and go. */
export function capabilitiesOf ({ parts }: ToolServerInfo) {
  return {
    tools: { listChanged: true },
    ...(parts.resources === true ? { resources: { listChanged: true, subscribe: parts.subscriptions === true } } : {}),
    ...(parts.prompts === true ? { prompts: { listChanged: true } } : {}),
    ...(parts.completions === true ? { completions: {} } : {}),
    ...(parts.logging === true ? { logging: {} } : {})
  }
}
