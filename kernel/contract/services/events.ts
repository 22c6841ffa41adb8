export const severities = ['info', 'warn', 'error'] as const
export type Severity = typeof severities[number]

/** `ts` is ISO 8601 UTC; `id` counts up from 1 in every epoch (one run of the gateway). */
export interface GatewayEvent {
  readonly id: number
  readonly ts: string
  /** Dotted: `slot.state`, `pull.progress`. */
  readonly type: string
  readonly severity: Severity
  /** `slot:<name>`, `model:<id>`, `system`. */
  readonly source: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface NewEvent {
  readonly type: string
  readonly severity?: Severity
  readonly source: string
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

export interface EventFilter {
  /** Only events with a higher id. */
  readonly since?: number | undefined
  /** Glob over the type: `slot.*`. */
  readonly type?: string | undefined
  /** Least severity. */
  readonly severity?: Severity | undefined
  readonly limit?: number | undefined
}

/**
 * The bus: the last 500 events and live subscribers with a queue of 256 each. A subscriber that falls
 * behind loses events and is told so by one `events.gap` that passes every filter.
 */
export interface EventBus {
  readonly epoch: string
  /** Never throws, never waits. */
  emit (event: NewEvent): void
  list (filter?: EventFilter): { readonly events: readonly GatewayEvent[], readonly next_since: number, readonly epoch: string }
  subscribe (filter: EventFilter, signal: AbortSignal): AsyncIterable<GatewayEvent>
}
