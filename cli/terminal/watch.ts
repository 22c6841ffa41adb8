import { setTimeout as wait } from 'node:timers/promises'
import type { Cli } from '../cli.js'
import { oneLine, truncate } from './text-width.js'

export interface Watched<Row> {
  readonly intervalMs: number
  readonly read: () => Promise<readonly Row[]>
  /** What a terminal shows. */
  readonly screen: (rows: readonly Row[]) => readonly string[]
  /** What makes a row the same row as before. */
  readonly key: (row: Row) => string
  /** What is told of a row where nothing can be drawn over; told again when it differs. */
  readonly line: (row: Row) => string
}

/**
 * Shows what there is, over and over, until a signal ends the command or `read` rejects. A terminal is drawn over; anything
 * else gets a line with the time for each row that is new, changed or gone.
 */
export async function watch<Row> (cli: Cli, { intervalMs, read, screen, key, line }: Watched<Row>): Promise<never> {
  const { out } = cli
  let known: ReadonlyMap<string, string> = new Map()
  let drawn = 0
  for (;;) {
    const rows = await read()
    if (out.redrawable) {
      const lines = fitted(screen(rows), out.height)
      await out.write(overdrawn(lines, drawn), cli.signal)
      drawn = lines.length
    } else {
      const now = new Map(rows.map(row => [key(row), oneLine(line(row))]))
      for (const text of changes(known, now)) out.line(`${new Date().toISOString()} ${text}`)
      known = now
    }
    await wait(intervalMs, undefined, { signal: cli.signal }).catch((error: unknown) => {
      cli.signal.throwIfAborted()
      throw error
    })
  }
}

/** Lines over the `before` lines above the cursor, and nothing below them. Pure. */
export function overdrawn (lines: readonly string[], before: number): string {
  const up = before === 0 ? '' : `\u001b[${before}A`
  return `${up}\r${lines.map(line => `${line}\u001b[K\n`).join('')}\u001b[J`
}

/** What is above the top of a terminal cannot be drawn over. Pure. */
export function fitted (lines: readonly string[], height: number | null): readonly string[] {
  const room = height === null ? lines.length : Math.max(1, height - 1)
  if (lines.length <= room) return lines
  return [...lines.slice(0, room - 1), `… and ${lines.length - room + 1} more lines`]
}

/** Pure. */
export function changes (before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>): readonly string[] {
  const gone = [...before.keys()].filter(key => !now.has(key)).map(key => `${truncate(oneLine(key), 200)} is over`)
  return [...gone, ...[...now].filter(([key, line]) => before.get(key) !== line).map(([, line]) => line)]
}
