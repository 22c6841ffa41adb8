import type { Clock, Timer } from 'svc-gateway/plugin'

/** Clients give up after a minute of silence. */
const HEARTBEAT_MS = 10_000

export interface CallProgress {
  readonly tell: (message: string, done?: number, total?: number) => void
  readonly end: () => void
}

interface Told {
  readonly progress: number
  readonly message: string
  readonly total?: number
}

/**
 * Signs of life of one call: at its beginning, whenever the tool tells something, and every ten seconds. What is told rises
 * with each, as the protocol has it, also where a tool tells the same twice.
 */
export function callProgress (clock: Clock, name: string, send: (told: Told) => void): CallProgress {
  const from = clock.monotonic()
  let last = -1
  let latest: { readonly message: string, readonly total?: number } | null = null
  let timer: Timer | null = null
  const say = (message: string, done: number, total?: number): void => {
    timer?.cancel()
    last = done > last ? done : last + 0.001
    send({ progress: last, message, ...(total === undefined ? {} : { total }) })
    timer = clock.setTimer(HEARTBEAT_MS, beat)
  }
  const beat = (): void => {
    const seconds = Math.round((clock.monotonic() - from) / 1000)
    // one scale: that of the tool once it has told something
    if (latest === null) say(`${name} runs for ${seconds} s`, seconds)
    else say(`${latest.message} (${seconds} s)`, last, latest.total)
  }
  say(`${name} begins`, 0)
  return {
    tell: (message, done, total) => {
      if (timer === null) return
      latest = { message, ...(total === undefined ? {} : { total }) }
      say(message, done ?? last, total)
    },
    end: () => {
      timer?.cancel()
      timer = null
    }
  }
}
