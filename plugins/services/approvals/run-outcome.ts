import { shownMessage, type ToolContent, type ToolOutcome } from 'svc-gateway/plugin'
import type { RunOutcome } from './inbox.js'

/** What an operator and the agent are told of a call that ran. Pure. */
export function runOutcome (outcome: ToolOutcome): RunOutcome {
  switch (outcome.kind) {
    case 'done': return outcome
    case 'content': return contentOutcome(outcome.content)
    case 'failed': return { kind: 'failed', error: { code: outcome.error.code, message: outcome.error.message } }
    case 'pending': throw new TypeError('an approved call asked for an approval')
  }
}

function contentOutcome ({ content, structuredContent, isError }: ToolContent): RunOutcome {
  if (isError !== true) return { kind: 'done', value: structuredContent ?? { content } }
  const texts = content.map(part => (part as { text?: unknown }).text).filter(text => typeof text === 'string')
  return { kind: 'failed', error: { code: 'mcp.tool_failed', message: shownMessage(texts.join('\n') || 'the tool failed without a word') } }
}
