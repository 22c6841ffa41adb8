import { messageOf, type Logger } from '../../contract/index.js'
import { LABEL_SLOT, type ContainerRuntime, type EngineInspection } from '../../contract/provider/engine-runtime.js'
import type { SlotOwner } from './slot-owner.js'

export interface RemovalDeps {
  readonly runtime: Pick<ContainerRuntime, 'remove'>
  readonly log: Logger
}

/** Removes an engine of an earlier run. One that resists goes to its slot, which removes it before it starts another. */
export async function removeFound (
  { runtime, log }: RemovalDeps, engine: EngineInspection, reason: string, ownerOf: (slot: string) => SlotOwner | undefined
): Promise<void> {
  log.info({ engine: engine.id, name: engine.name, reason }, 'removing an engine of an earlier run')
  try {
    await runtime.remove(engine.id)
  } catch (error) {
    log.error({ engine: engine.id, error: messageOf(error) }, 'an engine of an earlier run could not be removed')
    ownerOf(engine.labels[LABEL_SLOT] ?? '')?.inherit({
      id: engine.id,
      address: engine.address ?? { host: '', port: 0 },
      label: engine.label,
      configHash: '',
      adopted: true,
      workers: null
    }, `an engine of an earlier run could not be removed: ${messageOf(error)}`)
  }
}
