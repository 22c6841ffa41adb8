/** A replica that takes a request at this moment. */
export interface FreeReplica {
  readonly index: number
  /** Requests at work. */
  readonly inFlight: number
}

/** By how many requests a replica may be busier than the idlest and still get the conversation whose beginning it has cached. */
export const AFFINITY_BOUND = 2

/**
 * The replica with the fewest requests, the lower number first; `preferred` instead, while it is free and not busier
 * than that by more than the bound. Null when none is free. Pure.
 */
export function chooseReplica<R extends FreeReplica> (
  free: readonly R[], preferred: number | null, bound = AFFINITY_BOUND
): R | null {
  let least: R | null = null
  let wished: R | null = null
  for (const replica of free) {
    if (least === null || isBefore(replica, least)) least = replica
    if (replica.index === preferred) wished = replica
  }
  return wished !== null && wished.inFlight - least!.inFlight <= bound ? wished : least
}

function isBefore (a: FreeReplica, b: FreeReplica): boolean {
  return a.inFlight < b.inFlight || (a.inFlight === b.inFlight && a.index < b.index)
}
