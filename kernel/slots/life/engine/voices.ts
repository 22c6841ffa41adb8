import type { Clock, EngineClient, EngineProvider, SlotVoices } from '../../../contract/index.js'
import { abortable, linkedAbort } from '../../../async/waiting.js'

/** How long an engine has to list its voices. */
const VOICES_MS = 2_000

/** The voices of a running engine. One that is not up, too slow, or has no such listing is `offline`, never an error. */
export async function readVoices (
  name: string, provider: EngineProvider | null, client: EngineClient | null, clock: Clock, signal: AbortSignal
): Promise<SlotVoices> {
  const offline: SlotVoices = { name, voices: [], source: 'offline' }
  if (provider?.voices === undefined || client === null) return offline
  const { controller, dispose } = linkedAbort(signal)
  const timer = clock.setTimer(VOICES_MS, () => controller.abort(new Error('the engine takes too long to list its voices')))
  try {
    return { name, voices: await abortable(provider.voices(client, controller.signal), controller.signal), source: 'live' }
  } catch {
    return offline
  } finally {
    timer.cancel()
    dispose()
  }
}
