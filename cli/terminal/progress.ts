import { z } from 'zod'
import type { ApiClient } from '../client/client.js'
import { pathOf } from '../client/client.js'
import type { Output } from './output.js'
import { oneLine, truncate } from './text-width.js'

const frameSchema = z.looseObject({ state: z.string(), message: z.string().default('') })

/**
 * Waits for `work` and, at a terminal, shows what the slot goes through meanwhile. The progress is a courtesy:
 * whatever becomes of it, `work` alone decides.
 */
export async function withSlotProgress<T> (client: ApiClient, out: Output, slot: string, work: Promise<T>): Promise<T> {
  if (!out.animated) return await work
  const stop = new AbortController()
  const shown = showStates(client, out, slot, stop.signal).catch(() => {})
  try {
    return await work
  } finally {
    stop.abort()
    await shown
    out.redraw('')
  }
}

async function showStates (client: ApiClient, out: Output, slot: string, signal: AbortSignal): Promise<void> {
  for await (const { data } of client.events({ path: pathOf`/api/slots/${slot}/state/stream`, signal })) {
    const frame = frameSchema.safeParse(JSON.parse(data))
    if (!frame.success) continue
    const { state, message } = frame.data
    out.redraw(truncate(oneLine(`${slot}: ${state}${message === '' ? '' : `, ${message}`}`), out.width - 1))
  }
}
