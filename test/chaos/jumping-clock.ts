import { readFileSync } from 'node:fs'

/**
 * Loaded into a gateway before anything else: its wall clock is ahead of the machine's by the milliseconds that the file
 * named in `CHAOS_CLOCK` holds. A JavaScript program has no other wall clock than `Date`.
 */
const file = process.env.CHAOS_CLOCK ?? ''
const RealDate = Date
const LOOK_MS = 100
let offsetMs = 0

function look (): void {
  try {
    offsetMs = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    // no file: no offset
  }
}

look()
setInterval(look, LOOK_MS).unref()

const now = (): number => RealDate.now() + offsetMs
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: [], newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
  apply: () => new RealDate(now()).toString(),
  get: (target, key) => key === 'now' ? now : Reflect.get(target, key) as unknown
})
