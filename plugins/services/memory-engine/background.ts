import type { Background, Core } from './core.js'

/** What goes on beside requests. */
const parts: readonly Background[] = []

export function startBackground (core: Core): void {
  for (const start of parts) start(core)
}
