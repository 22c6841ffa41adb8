import { createHash } from 'node:crypto'
import type { SlotLease, SvcError } from '../../contract/index.js'
import type { TokenCount } from '../requests/active-requests.js'
import type { ReaderSink } from '../answer/answer-sink.js'
import { FanOut } from '../answer/fan-out.js'
import { boardSlot } from './board-slot.js'

export interface FlightPlan {
  readonly slot: string
  readonly path: string
  readonly body: Buffer
  readonly limitBytes: number
  /** False for a slot that is up and busy: equal requests may want different answers there, so each gets its own call. */
  readonly shared: boolean
  /** @param again the request was given to an engine that turned out not to be there */
  readonly acquire: (signal: AbortSignal, again: boolean) => Promise<SlotLease>
  /**
   * Sends the request; `settled` is called once, or `unsent` in its place when the engine could not be reached at all.
   * Returns the function that gives it up.
   */
  readonly send: (lease: SlotLease, sink: FanOut, settled: () => void, unsent: (() => void) | null) => (reason: Error) => void
}

/** Who goes on board. Each is told when the flight is off, and once that it is over for him. */
export interface Passenger {
  /** @param counter counts for all on board */
  readonly sent: (counter: TokenCount) => void
  /** It came back without having reached the engine, and waits once more. */
  readonly returned: () => void
  readonly done: () => void
}

/** A place on board of a flight. */
export interface Seat {
  /** Leaves; the last one out ends the flight. */
  readonly leave: (reason: Error) => void
}

/** How often a request is given to an engine that turns out not to be there. */
const MOST_ATTEMPTS = 3

interface Flight {
  readonly key: string
  readonly sink: FanOut
  /** Gives up what waits or runs. */
  leave: (reason: Error) => void
}

/**
 * Requests that wait for a slot. While it is not up yet, those with the same path and the same rewritten body share
 * one upstream call; the flight closes to newcomers when the slot is ready, so all see the answer from its first
 * byte.
 */
export class Flights {
  readonly #boarding = new Map<string, Flight>()
  readonly #passengers = new WeakMap<Flight, Set<Passenger>>()
  readonly #told: (error: unknown) => SvcError
  #alone = 0

  /** @param told what clients are told of a failure */
  constructor (told: (error: unknown) => SvcError) {
    this.#told = told
  }

  get boarding (): number { return this.#boarding.size }

  board (plan: FlightPlan, client: ReaderSink, passenger: Passenger): Seat {
    const key = plan.shared ? identity(plan) : `alone-${++this.#alone}`
    const flight = this.#boarding.get(key) ?? this.#open(key, plan)
    const passengers = this.#on(flight)
    passengers.add(passenger)
    flight.sink.add(client)
    return {
      leave: reason => {
        flight.sink.remove(client)
        if (!passengers.delete(passenger)) return
        passenger.done()
        if (flight.sink.size > 0) return
        this.#close(flight)
        flight.leave(reason)
      }
    }
  }

  #on (flight: Flight): Set<Passenger> {
    let set = this.#passengers.get(flight)
    if (set === undefined) this.#passengers.set(flight, set = new Set())
    return set
  }

  #open (key: string, plan: FlightPlan): Flight {
    const flight: Flight = { key, sink: new FanOut(plan.limitBytes), leave: () => {} }
    this.#boarding.set(key, flight)
    this.#takeOff(flight, plan, 1)
    return flight
  }

  #takeOff (flight: Flight, plan: FlightPlan, attempt: number): void {
    const settled = (): void => {
      const passengers = [...this.#on(flight)]
      this.#on(flight).clear()
      for (const { done } of passengers) done()
    }
    const unsent = (): void => {
      if (flight.sink.size === 0) return settled()
      for (const { returned } of this.#on(flight)) returned()
      this.#takeOff(flight, plan, attempt + 1)
    }
    flight.leave = boardSlot({
      acquire: signal => plan.acquire(signal, attempt > 1),
      send: lease => {
        this.#close(flight)
        for (const { sent } of this.#on(flight)) sent(flight.sink)
        return plan.send(lease, flight.sink, settled, attempt < MOST_ATTEMPTS ? unsent : null)
      },
      failed: error => {
        this.#close(flight)
        flight.sink.fail(this.#told(error))
        settled()
      }
    })
  }

  #close (flight: Flight): void {
    if (this.#boarding.get(flight.key) === flight) this.#boarding.delete(flight.key)
  }
}

function identity ({ slot, path, body }: FlightPlan): string {
  return createHash('sha256').update(`${slot}\n${path}\n`).update(body).digest('base64')
}
