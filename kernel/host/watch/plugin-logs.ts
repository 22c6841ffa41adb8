import { redact, type CleanText, type Clock, type Logger, type PluginLogLine } from '../../contract/index.js'

/** Lines that a reader may be behind. */
const LONGEST_QUEUE = 1_000

type Listener = (line: PluginLogLine) => void

/** What plugins log, for those who read along: every line, whatever level the gateway writes down. Costs nothing unread. */
export class PluginLogs {
  readonly #clock: Clock
  readonly #clean: CleanText
  readonly #listeners = new Map<string, Set<Listener>>()

  constructor (clock: Clock, clean: CleanText) {
    this.#clock = clock
    this.#clean = clean
  }

  /** The plugin's log, which can be read along. */
  tapped (plugin: string, log: Logger): Logger {
    const line = (level: keyof Logger) => (first: object | string, message?: string): void => {
      if (typeof first === 'string') log[level](first)
      else log[level](first, message)
      const listeners = this.#listeners.get(plugin)
      if (listeners === undefined) return
      const told: PluginLogLine = {
        ts: new Date(this.#clock.now()).toISOString(),
        level,
        message: this.#clean(typeof first === 'string' ? first : message ?? ''),
        fields: typeof first === 'string' ? {} : redact(first, this.#clean) as Record<string, unknown>
      }
      for (const listener of listeners) listener(told)
    }
    return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
  }

  /** Lines from now on, until the signal aborts. Of a reader who falls behind the oldest lines are dropped. */
  async* follow (plugin: string, signal: AbortSignal): AsyncGenerator<PluginLogLine> {
    const queue: PluginLogLine[] = []
    let wake = (): void => {}
    const listener: Listener = line => {
      queue.push(line)
      if (queue.length > LONGEST_QUEUE) queue.shift()
      wake()
    }
    const listeners = this.#listeners.get(plugin) ?? new Set()
    this.#listeners.set(plugin, listeners.add(listener))
    const leave = (): void => wake()
    signal.addEventListener('abort', leave)
    try {
      while (!signal.aborted) {
        const line = queue.shift()
        if (line === undefined) await new Promise<void>(resolve => { wake = resolve })
        else yield line
      }
    } finally {
      signal.removeEventListener('abort', leave)
      listeners.delete(listener)
      if (listeners.size === 0) this.#listeners.delete(plugin)
    }
  }
}
