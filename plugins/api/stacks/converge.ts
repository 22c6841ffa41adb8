import { abortable, messageOf, type SlotService } from 'svc-gateway/plugin'
import type { StackTarget } from './pointer.js'
import type { Converged, StackProblem } from './schemas.js'
import type { StackServices } from './stack-api.js'

/** Loading an image model stops the language models of its GPU: that is for the first request to decide. */
const onDemand = 'img'

/**
 * Slots that run, or are on their way up, and that are not to: also one of which no engine is made yet, as it would come up
 * once they are done. One that another one's engine serves goes with that one.
 */
export function unloads (slots: SlotService, { keep }: StackTarget): readonly string[] {
  const anchors = keep.filter(name => slots.names().includes(name)).map(name => slots.config(name).served_by)
  return slots.names().filter(name => {
    if (keep.includes(name) || anchors.includes(name) || slots.config(name).served_by !== null) return false
    return slots.isLive(name)
  })
}

/** It runs, or is on its way up. */
export function isUp (slots: SlotService, name: string): boolean {
  return !['offline', 'error', 'unloading'].includes(slots.status(name).state)
}

/**
 * Brings what runs in line with the configuration in force. What is not to run goes first: its memory may be needed. What
 * fails is told and the rest goes on. Every step looks at what is, so that doing it again only does what is missing. Rejects
 * with the reason of the signal.
 */
export async function converge (
  { overlay, slots }: Pick<StackServices, 'overlay' | 'slots'>, target: StackTarget, refused: readonly StackProblem[],
  signal: AbortSignal
): Promise<Converged> {
  const converged: Converged = {
    loaded: [], swapped: [], reloaded: [], skipped: [], unloaded: [], capabilities_applied: [], errors: [...refused]
  }
  const attempt = async (name: string, work: () => Promise<void>): Promise<void> => {
    signal.throwIfAborted()
    try {
      await abortable(work(), signal)
    } catch (error) {
      signal.throwIfAborted()
      converged.errors.push({ target: name, error: messageOf(error) })
    }
  }
  await Promise.all(unloads(slots, target).map(name => attempt(`slot:${name}`, async () => {
    // a pinned slot is kept from eviction, not from its operator
    await slots.unload(name, { force: slots.config(name).pinned, signal })
    converged.unloaded.push(name)
  })))
  for (const name of target.load) {
    await attempt(`slot:${name}`, async () => {
      converged[await slots.converge(name, { signal })].push(name)
    })
  }
  for (const child of target.children) {
    await attempt(`capability:${child}`, async () => {
      if (child !== onDemand) await overlay.converge(child, signal)
      converged.capabilities_applied.push(child)
    })
  }
  return { ...converged, unloaded: converged.unloaded.sort() }
}
