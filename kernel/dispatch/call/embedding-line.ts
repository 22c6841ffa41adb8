import { svcError, type RequestPriority, type SlotLease, type SvcError } from '../../contract/index.js'
import type { AnswerSink } from '../answer/answer-sink.js'
import { joinedBody, splitAnswer, type EmbeddingTexts } from '../body/embedding-body.js'
import { WholeAnswer } from '../answer/whole-answer.js'
import { boardSlot } from './board-slot.js'

/** Texts and bytes of one joined call: enough that calls cost nothing, few enough that no text waits for many others. */
const MOST_TEXTS = 64
const MOST_BYTES = 256 * 1024
/** How often a call is given to an engine that turns out not to be there. */
const MOST_ATTEMPTS = 3
const QUEUE_RETRY_S = 5

/** What one client waits for. */
export interface EmbeddingGuest {
  readonly texts: EmbeddingTexts
  /** Its body, for a call of its own. */
  readonly body: Buffer
  readonly sink: AnswerSink
  /** It is with the engine, or back in the line. */
  readonly sent: (isSent: boolean) => void
  /** It is over for this client: called once. */
  readonly done: () => void
}

/** How the calls for some guests reach their slot. */
export interface EmbeddingRoute {
  readonly slot: string
  readonly priority: RequestPriority
  /** @param again the call was given to an engine that turned out not to be there */
  readonly acquire: (signal: AbortSignal, again: boolean) => Promise<SlotLease>
  /** As `FlightPlan.send`, with a body. @param requests how many clients' requests it is */
  readonly send: (
    lease: SlotLease, body: Buffer, requests: number, sink: AnswerSink, settled: () => void, unsent: (() => void) | null
  ) => (reason: Error) => void
}

interface Seat {
  readonly guest: EmbeddingGuest
  group: Group
  /** Its bytes are among those that wait. */
  isCounted: boolean
}

interface Group {
  readonly key: string
  readonly route: EmbeddingRoute
  readonly seats: Set<Seat>
  texts: number
  bytes: number
  /** Gives up what waits or runs. */
  leave: (reason: Error) => void
}

/**
 * Embedding requests that wait for a worker. Those for the same slot with the same parameters become one call of the
 * engine, and its answer is cut up for them again. One that is alone goes out and comes back as it is. When an engine
 * refuses a joined call, its halves are asked on their own, so that what is wrong with one text is told to its client
 * alone. The line is bounded by bytes, because a document is cut into any number of texts.
 */
export class EmbeddingLine {
  /** Those that still take guests. */
  readonly #open = new Map<string, Group>()
  /** Waiting bytes by slot. */
  readonly #bytes = new Map<string, number>()
  readonly #told: (error: unknown) => SvcError
  readonly #limitBytes: () => number

  /** @param told what clients are told of a failure */
  constructor (told: (error: unknown) => SvcError, limitBytes: () => number) {
    this.#told = told
    this.#limitBytes = limitBytes
  }

  /** Throws `slot.queue_full`. Returns the function with which the guest leaves. */
  join (route: EmbeddingRoute, guest: EmbeddingGuest): (reason: Error) => void {
    const waiting = this.#bytes.get(route.slot) ?? 0
    if (waiting > 0 && waiting + guest.body.length > this.#limitBytes()) throw lineFull(route.slot, waiting)
    const key = `${route.slot}\n${route.priority}\n${guest.texts.parameters}`
    const open = this.#open.get(key)
    const group = open !== undefined && hasRoom(open, guest) ? open : newGroup(key, route)
    const seat: Seat = { guest, group, isCounted: false }
    this.#seat(seat, group)
    if (group !== open) {
      this.#open.set(key, group)
      this.#await(group, 1)
    }
    return reason => this.#leave(seat, reason)
  }

  #seat (seat: Seat, group: Group): void {
    seat.group = group
    group.seats.add(seat)
    group.texts += seat.guest.texts.sizes.length
    group.bytes += seat.guest.body.length
    this.#count(seat, true)
  }

  #leave (seat: Seat, reason: Error): void {
    const { group } = seat
    if (!this.#over(seat) || group.seats.size > 0) return
    this.#close(group)
    group.leave(reason)
  }

  #await (group: Group, attempt: number): void {
    group.leave = boardSlot({
      acquire: signal => group.route.acquire(signal, attempt > 1),
      send: lease => {
        this.#close(group)
        return this.#send(group, lease, attempt)
      },
      failed: error => {
        this.#close(group)
        this.#fail(group, this.#told(error))
      }
    })
  }

  #send (group: Group, lease: SlotLease, attempt: number): (reason: Error) => void {
    const seats = [...group.seats]
    for (const seat of seats) {
      this.#count(seat, false)
      seat.guest.sent(true)
    }
    const unsent = (): void => {
      for (const seat of group.seats) {
        this.#count(seat, true)
        seat.guest.sent(false)
      }
      if (group.seats.size > 0) this.#await(group, attempt + 1)
    }
    const onUnsent = attempt < MOST_ATTEMPTS ? unsent : null
    const [first] = seats
    const { send } = group.route
    if (seats.length === 1) return send(lease, first!.guest.body, 1, first!.guest.sink, () => this.#over(first!), onUnsent)
    const answer = new WholeAnswer((status, headers, body) => this.#answer(group, seats, status, headers, body), error => {
      if (isAboutTexts(error.status)) this.#halve(group)
      else this.#fail(group, error)
    })
    return send(lease, joinedBody(seats.map(({ guest }) => guest.texts)), seats.length, answer, () => {}, onUnsent)
  }

  /** @param seats of those who were sent, in their order; some may have left since */
  #answer (group: Group, seats: readonly Seat[], status: number, headers: readonly string[], body: Buffer): void {
    const parts = status === 200 ? splitAnswer(body, seats.map(({ guest }) => guest.texts)) : null
    if (parts === null && isAboutTexts(status)) return this.#halve(group)
    seats.forEach((seat, i) => {
      if (!group.seats.has(seat)) return
      const own = parts?.[i] ?? body
      const { sink } = seat.guest
      sink.head(status, [...headers, 'content-length', String(own.length)])
      sink.data(own)
      sink.end()
      this.#over(seat)
    })
  }

  /** Something is wrong with one of them, and it is not known with which. */
  #halve (group: Group): void {
    const seats = [...group.seats]
    group.seats.clear()
    const middle = Math.ceil(seats.length / 2)
    for (const half of [seats.slice(0, middle), seats.slice(middle)]) {
      if (half.length === 0) continue
      const next = newGroup(group.key, group.route)
      for (const seat of half) {
        this.#seat(seat, next)
        seat.guest.sent(false)
      }
      this.#await(next, 1)
    }
  }

  #fail (group: Group, error: SvcError): void {
    for (const seat of [...group.seats]) {
      seat.guest.sink.fail(error)
      this.#over(seat)
    }
  }

  /** False when it was over before. */
  #over (seat: Seat): boolean {
    if (!seat.group.seats.delete(seat)) return false
    this.#count(seat, false)
    seat.guest.done()
    return true
  }

  #count (seat: Seat, waits: boolean): void {
    if (seat.isCounted === waits) return
    seat.isCounted = waits
    const { slot } = seat.group.route
    const bytes = (this.#bytes.get(slot) ?? 0) + (waits ? seat.guest.body.length : -seat.guest.body.length)
    if (bytes === 0) this.#bytes.delete(slot)
    else this.#bytes.set(slot, bytes)
  }

  #close (group: Group): void {
    if (this.#open.get(group.key) === group) this.#open.delete(group.key)
  }
}

function newGroup (key: string, route: EmbeddingRoute): Group {
  return { key, route, seats: new Set(), texts: 0, bytes: 0, leave: () => {} }
}

function hasRoom ({ texts, bytes }: Group, guest: EmbeddingGuest): boolean {
  return texts + guest.texts.sizes.length <= MOST_TEXTS && bytes + guest.body.length <= MOST_BYTES
}

/** What one of the texts may be to blame for. A 200 is here when it is not the answer to what was asked. */
function isAboutTexts (status: number): boolean {
  return status === 500 || (status >= 200 && status < 500 && status !== 408 && status !== 429)
}

function lineFull (slot: string, bytes: number): SvcError {
  return svcError('slot.queue_full', `slot '${slot}' has ${Math.round(bytes / 1024)} KiB of texts waiting and accepts no more for now; try again later`, {
    details: { slot, retry_after_s: QUEUE_RETRY_S }
  })
}
