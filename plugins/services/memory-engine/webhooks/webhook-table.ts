import { randomUUID } from 'node:crypto'
import type { Core } from '../core.js'
import type { Page } from '../store/page.js'
import { inSlices, ROWS_AT_ONCE } from '../store/slices.js'
import type { Store } from '../store/store.js'
import type { HttpConfig } from './http-config.js'

export interface Webhook {
  readonly seq: number
  readonly id: string
  readonly bank: number
  readonly url: string
  readonly secret: string | null
  readonly eventTypes: readonly string[]
  readonly enabled: boolean
  readonly httpConfig: HttpConfig
  readonly createdAt: number
  readonly updatedAt: number
}

export type WebhookValues = Pick<Webhook, 'url' | 'secret' | 'eventTypes' | 'enabled' | 'httpConfig'>

interface Row {
  readonly seq: number
  readonly id: string
  readonly bank: number
  readonly url: string
  readonly secret: string | null
  readonly event_types: string
  readonly enabled: number
  readonly http_config: string
  readonly created_at: number
  readonly updated_at: number
}

export type DeliveryStatus = 'pending' | 'delivered' | 'failed'

export interface Delivery {
  readonly seq: number
  readonly id: string
  readonly webhook: number
  readonly event_type: string
  readonly payload: string
  readonly status: DeliveryStatus
  readonly attempts: number
  readonly next_retry_at: number | null
  readonly last_error: string | null
  readonly last_response_status: number | null
  readonly last_response_body: string | null
  readonly last_attempt_at: number | null
  readonly created_at: number
  readonly updated_at: number
}

export type Attempt = Pick<Delivery, 'status' | 'attempts' | 'next_retry_at' | 'last_error' | 'last_response_status' | 'last_response_body'>

/** How many deliveries of a webhook are kept. */
const KEPT = 500

/** Webhooks and what they were or are to be sent; `bank` is the number of one. */
export class WebhookTable {
  readonly #store: Store
  readonly #now: () => number

  constructor ({ store, now }: Pick<Core, 'store' | 'now'>) {
    this.#store = store
    this.#now = now
  }

  add (bank: number, { url, secret, eventTypes, enabled, httpConfig }: WebhookValues): Webhook {
    const id = randomUUID()
    const now = this.#now()
    this.#store.run('INSERT INTO webhooks (id, bank, url, secret, event_types, enabled, http_config, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
      [id, bank, url, secret, JSON.stringify(eventTypes), Number(enabled), JSON.stringify(httpConfig), now, now])
    return this.get(bank, id)!
  }

  get (bank: number, id: string): Webhook | null {
    const row = this.#store.get<Row>('SELECT * FROM webhooks WHERE bank = ? AND id = ?', [bank, id])
    return row === undefined ? null : webhookOf(row)
  }

  bySeq (seq: number): Webhook | null {
    const row = this.#store.get<Row>('SELECT * FROM webhooks WHERE seq = ?', [seq])
    return row === undefined ? null : webhookOf(row)
  }

  /** All of them, in the order in which they were made, a few at a time. */
  * each (bank: number): Generator<Webhook> {
    const rows = inSlices(after => this.#store.all<Row>(`SELECT * FROM webhooks WHERE bank = ? AND seq > ? ORDER BY seq LIMIT ${ROWS_AT_ONCE}`, [bank, after]))
    for (const row of rows) yield webhookOf(row)
  }

  all (bank: number): readonly Webhook[] {
    return this.#store.all<Row>('SELECT * FROM webhooks WHERE bank = ? ORDER BY seq DESC', [bank]).map(webhookOf)
  }

  /** Some of them, the latest first, and how many there are. */
  page (bank: number, { limit, offset }: Page): { readonly total: number, readonly webhooks: readonly Webhook[] } {
    const { total } = this.#store.get<{ total: number }>('SELECT count(*) AS total FROM webhooks WHERE bank = ?', [bank])!
    const rows = this.#store.all<Row>('SELECT * FROM webhooks WHERE bank = ? ORDER BY seq DESC LIMIT ? OFFSET ?', [bank, limit, offset])
    return { total, webhooks: rows.map(webhookOf) }
  }

  update (bank: number, id: string, changes: Partial<WebhookValues>): Webhook | null {
    const { url, secret, eventTypes, enabled, httpConfig } = changes
    this.#store.update('webhooks', {
      url, secret, event_types: eventTypes === undefined ? undefined : JSON.stringify(eventTypes),
      enabled: enabled === undefined ? undefined : Number(enabled),
      http_config: httpConfig === undefined ? undefined : JSON.stringify(httpConfig), updated_at: this.#now()
    }, 'bank = ? AND id = ?', [bank, id])
    return this.get(bank, id)
  }

  delete (bank: number, id: string): boolean {
    return this.#store.run('DELETE FROM webhooks WHERE bank = ? AND id = ?', [bank, id]).changes > 0
  }

  /** Lays a delivery down for each webhook of the bank that wants the event; returns how many. */
  announce (bank: number, eventType: string, payload: () => Readonly<Record<string, unknown>>): number {
    const wanting = this.all(bank).filter(({ enabled, eventTypes }) => enabled && eventTypes.includes(eventType))
    const now = this.#now()
    for (const { seq } of wanting) {
      this.#store.run(`INSERT INTO webhook_deliveries (id, webhook, event_type, payload, status, next_retry_at, created_at, updated_at)
        VALUES (?, ?, ?, ?, 'pending', ?, ?, ?)`, [randomUUID(), seq, eventType, JSON.stringify(payload()), now, now, now])
      this.#store.run(`DELETE FROM webhook_deliveries WHERE webhook = ? AND status <> 'pending' AND seq <=
        (SELECT seq FROM webhook_deliveries WHERE webhook = ? ORDER BY seq DESC LIMIT 1 OFFSET ${KEPT})`, [seq, seq])
    }
    return wanting.length
  }

  /** The one that is due first; `dueAt` says when. */
  nextDelivery (): Delivery | null {
    return this.#store.get<Delivery>(
      `SELECT * FROM webhook_deliveries WHERE status = 'pending' ORDER BY next_retry_at, seq LIMIT 1`
    ) ?? null
  }

  /** From the latest; `before` is a `seq`. */
  deliveries (webhook: Webhook, before: number | null, limit: number): readonly Delivery[] {
    return this.#store.all<Delivery>('SELECT * FROM webhook_deliveries WHERE webhook = ? AND (? IS NULL OR seq < ?) ORDER BY seq DESC LIMIT ?',
      [webhook.seq, before, before, limit])
  }

  attempted ({ seq }: Delivery, attempt: Attempt): void {
    const now = this.#now()
    this.#store.run(`UPDATE webhook_deliveries SET status = ?, attempts = ?, next_retry_at = ?, last_error = ?, last_response_status = ?,
      last_response_body = ?, last_attempt_at = ?, updated_at = ? WHERE seq = ?`, [
      attempt.status, attempt.attempts, attempt.next_retry_at, attempt.last_error, attempt.last_response_status,
      attempt.last_response_body, now, now, seq
    ])
  }
}

function webhookOf (row: Row): Webhook {
  return {
    seq: row.seq,
    id: row.id,
    bank: row.bank,
    url: row.url,
    secret: row.secret,
    eventTypes: JSON.parse(row.event_types) as string[],
    enabled: row.enabled === 1,
    httpConfig: JSON.parse(row.http_config) as HttpConfig,
    createdAt: row.created_at,
    updatedAt: row.updated_at
  }
}
