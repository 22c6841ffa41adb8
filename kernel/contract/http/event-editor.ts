/** One event of an event stream. */
export interface StreamEvent {
  /** Its type; empty when it has none. */
  readonly event: string
  readonly data: string
}

/** The request that an answer belongs to. */
export interface EventAsk {
  /** What the engine was told in the place of `model`. */
  readonly model: string
  /** Epoch milliseconds when the answer began. */
  readonly now: number
  /** Whether the client asked for a stream. */
  readonly stream: boolean
}

/**
 * Puts one answer right for clients that read a wire format to the letter where the engine does not write it so. Made for
 * each answer, so it may keep what it has seen. Called in the order of the events; must not throw.
 */
export interface EventEditor {
  /** What goes out in place of an event; null lets it pass byte for byte. */
  event (event: StreamEvent): readonly StreamEvent[] | null
  /**
   * A whole answer, status 200, to a client that asked for a stream: its events, or null to let it pass as it is. Asked
   * only where the client did, and for bodies of at most 8 MiB.
   */
  whole? (contentType: string, body: string): readonly StreamEvent[] | null
}
