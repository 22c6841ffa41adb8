import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, type ConfigService, type ModelRegistry, type SlotService } from 'svc-gateway/plugin'
import { mainSlots } from './slot-kinds.js'

export const SENTINEL = '.first_run_done'

export function sentinelPath ({ paths }: ConfigService): string {
  return join(paths.state, SENTINEL)
}

/** Writes down that the first run is over. Idempotent. */
export async function completeFirstRun ({ slots }: { readonly slots: SlotService }): Promise<void> {
  await slots.change(draft => draft.config.putState(SENTINEL, 'first_run_done\n'))
}

/**
 * A first run makes the list of models stable: every slot once, by its name, loaded or not. Later runs leave the settings as
 * they are. Returns what went wrong, since a first run goes on whatever becomes of it.
 */
export async function steadyModelList (config: ConfigService): Promise<readonly string[]> {
  const wasDone = await access(sentinelPath(config)).then(() => true, () => false)
  if (wasDone) return []
  try {
    await config.patchSvc({ dispatcher: { list_unloaded: true, list_virtual: false } })
    return []
  } catch (error) {
    return [`GET /v1/models lists loaded slots only: ${messageOf(error)}`]
  }
}

/** What a first run has done so far, by the configuration alone. Pure. */
export function firstRunFacts (
  models: Pick<ModelRegistry, 'list'>, slots: readonly string[], sentinel: boolean
): { readonly first_run: boolean, readonly has_models: boolean, readonly has_default_slot: boolean } {
  const hasModels = models.list().length > 0
  const hasMain = slots.some(name => mainSlots.includes(name))
  return { first_run: !hasModels && !sentinel, has_models: hasModels, has_default_slot: hasMain }
}
