import { createHmac } from 'node:crypto'
import { within } from 'svc-gateway/plugin'
import type { Core } from '../core.js'
import type { Operation } from '../operations/operation.js'
import { operationsOf } from '../operations/operations.js'
import { findBank } from '../store/bank-table.js'
import { wireTime } from '../wire/times.js'
import { targetProblem } from './target.js'
import { WebhookTable, type Attempt, type Delivery, type Webhook } from './webhook-table.js'

/** The pauses before new tries: 5 s, 5 min, 30 min, 2 h, 5 h. */
const PAUSES_MS = [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000]
const LONGEST_TIMER_MS = 600_000
/** After a disk that took nothing. */
const LATER_MS = 5_000
const SHOWN_ANSWER_CHARS = 1000

/** Sends what events have laid down, one after the other, again where it failed, and goes on after a restart. */
export function startWebhooks (core: Core): void {
  const table = new WebhookTable(core)
  let timer: NodeJS.Timeout | null = null
  let isSending = false
  /** What was sent, where that could not be written down: it is not sent again. */
  let unwritten: { readonly seq: number, readonly attempt: Attempt } | null = null
  core.hooks.retaining.push(({ bank, bankId, documents }) => {
    for (const seq of documents) {
      table.announce(bank, 'retain.completed', () => {
        const { document_id: id, tags } = core.store.get<{ document_id: string, tags: string }>(
          'SELECT document_id, tags FROM documents WHERE seq = ?', [seq]
        )!
        return {
          event: 'retain.completed', bank_id: bankId, operation_id: '', status: 'completed', timestamp: wireTime(core.now()),
          data: { document_id: id, tags: JSON.parse(tags) as string[] }
        }
      })
    }
  })
  // a retain may be a part of a larger transaction: what it laid down is sent once that is committed
  core.hooks.retained.push(() => setImmediate(wake))
  const announce = (operation: Operation): void => {
    if (operation.type !== 'consolidation') return
    const bank = findBank(core.store, operation.bankId)
    if (bank !== undefined) table.announce(bank.seq, 'consolidation.completed', () => consolidationEvent(core, operation))
  }
  operationsOf(core).ending.push(announce)
  operationsOf(core).ended.push(({ type }) => {
    if (type === 'consolidation') wake()
  })
  core.closing.addEventListener('abort', () => { if (timer !== null) clearTimeout(timer) })
  wake()

  function wake (): void {
    if (isSending || core.closing.aborted) return
    const next = table.nextDelivery()
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (next === null) return
    const inMs = (next.next_retry_at ?? 0) - core.now()
    if (inMs > 0) {
      timer = setTimeout(wake, Math.min(inMs, LONGEST_TIMER_MS))
      timer.unref()
      return
    }
    isSending = true
    void send(next).then(() => {
      isSending = false
      wake()
    }).catch((error: unknown) => {
      isSending = false
      core.log('warn', 'how a webhook of the memory engine was sent could not be written down', { error: (error as Error).message })
      if (core.closing.aborted) return
      timer = setTimeout(wake, LATER_MS)
      timer.unref()
    })
  }

  async function send (delivery: Delivery): Promise<void> {
    const attempt = unwritten?.seq === delivery.seq ? unwritten.attempt
      : await tried(core, table.bySeq(delivery.webhook)!, delivery)
    if (core.closing.aborted) return
    unwritten = { seq: delivery.seq, attempt }
    table.attempted(delivery, attempt)
    unwritten = null
  }
}

function consolidationEvent (core: Core, { id, bankId, status, result, error }: Operation): Record<string, unknown> {
  const { observations_created: created = 0, observations_updated: updated = 0, observations_deleted: deleted = 0 } = result
  return {
    event: 'consolidation.completed', bank_id: bankId, operation_id: id, status, timestamp: wireTime(core.now()),
    data: {
      observations_created: created, observations_updated: updated, observations_deleted: deleted,
      ...error !== null && { error_message: error }
    }
  }
}

async function tried (core: Core, webhook: Webhook, delivery: Delivery): Promise<Attempt> {
  const attempts = delivery.attempts + 1
  const pause = PAUSES_MS[attempts - 1]
  const failed = (error: string, status: number | null, body: string | null): Attempt => ({
    status: pause === undefined ? 'failed' : 'pending', attempts, next_retry_at: pause === undefined ? null : core.now() + pause,
    last_error: error, last_response_status: status, last_response_body: body
  })
  const problem = targetProblem(webhook.url)
  if (problem !== null) return failed(problem, null, null)
  const { method, timeout_seconds: seconds, headers } = webhook.httpConfig
  const bytes = Buffer.from(delivery.payload)
  const signature = webhook.secret === null ? {} : {
    'x-hindsight-signature': `sha256=${createHmac('sha256', webhook.secret).update(bytes).digest('hex')}`
  }
  try {
    const url = new URL(webhook.url)
    for (const [name, value] of Object.entries(webhook.httpConfig.params)) url.searchParams.set(name, value)
    const { status, body } = await within(core.closing, seconds * 1000, signal => core.outside.run({
      to: 'web', url: url.href, method, headers: { ...headers, 'content-type': 'application/json', ...signature }, body: method === 'GET' ? Buffer.alloc(0) : bytes
    }, signal))
    const said = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8').slice(0, SHOWN_ANSWER_CHARS)
    if (status >= 300) return failed(`HTTP ${status}`, status, said)
    return {
      status: 'delivered', attempts, next_retry_at: null, last_error: null, last_response_status: status,
      last_response_body: said
    }
  } catch (error) {
    return failed((error as Error).message, null, null)
  }
}
