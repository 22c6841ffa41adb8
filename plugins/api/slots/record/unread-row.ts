import type { Diagnostic, UnreadSlot } from 'svc-gateway/plugin'
import { problemOf } from './record.js'
import type { UnreadRow } from './record-schema.js'

/** A slot whose file cannot be read as a row among the slots. Pure. */
export function unreadRow ({ name, engine }: UnreadSlot, diagnostics: readonly Diagnostic[]): UnreadRow {
  const runs = engine === null ? '' : '; its engine is left running'
  const message = `the slot file cannot be read${runs}; fix it and run \`svc config reload\`, or \`svc slot delete ${name}\``
  return {
    name,
    kind: 'unread',
    state: 'error',
    status: 'error',
    port: engine?.address?.port ?? null,
    container_status: engine === null ? 'stopped' : 'running',
    ...(engine === null ? {} : { actual_image: engine.label }),
    _synthetic: true,
    _synthetic_reason: message,
    metrics: { toks: 0, ttft: null, ctx: null, kv: null, mem: null },
    metadata: {
      message,
      file_problems: diagnostics.map(problemOf)
    }
  }
}
