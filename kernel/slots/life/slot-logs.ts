import { redactLine, type LogQuery } from '../../contract/index.js'
import { LABEL_INSTANCE, LABEL_SLOT } from '../../contract/provider/engine-runtime.js'
import { isLoading } from '../schedule/slot-machine.js'
import type { FleetDeps } from './fleet-deps.js'
import type { SlotFleet } from './slot-fleet.js'

export interface SlotLogsDeps extends Pick<FleetDeps, 'config' | 'runtime' | 'instance'> {
  readonly fleet: Pick<SlotFleet, 'status'>
}

/** Lines of a slot's engine, without secrets; of one that failed to start, its last ones. */
export async function* slotLogs (deps: SlotLogsDeps, name: string, query: LogQuery, signal: AbortSignal): AsyncGenerator<string> {
  const { config, runtime, fleet } = deps
  const { engineId, failure, state } = fleet.status(name)
  const id = engineId ?? (isLoading(state) ? await loadingEngine(deps, name) : null)
  if (id === null) return yield* failure?.logTail ?? []
  for await (const line of runtime.logs(id, { ...query, signal })) yield redactLine(config.withoutSecrets(line))
}

/** A slot knows its engine once it serves; until then its labels tell which one it is. */
async function loadingEngine ({ runtime, instance }: SlotLogsDeps, name: string): Promise<string | null> {
  const found = await runtime.list({ [LABEL_INSTANCE]: instance, [LABEL_SLOT]: name })
  return found.filter(engine => engine.state === 'running').at(-1)?.id ?? null
}
