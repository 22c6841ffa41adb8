import { svcConfigSchema, type Logger, type Paths } from '../../kernel/contract/index.js'
import { noProviders, type LaidProviders } from '../../kernel/config/parts/laid-providers.js'
import { loadParts } from '../../kernel/config/load/load-parts.js'
import { snapshotOf } from '../../kernel/config/snapshot.js'
import { createSystemClock } from '../../kernel/state/system-clock.js'
import { declaredPlugins, layPlugins } from './declared-plugins.js'
import { svcSchema } from './svc-schema.js'

/** The providers that a gateway on this home would have, as far as they can be told without one. */
export async function homeProviders (paths: Paths): Promise<LaidProviders> {
  const parts = await loadParts({ paths, schema: svcSchema }, null)
  const svc = { ...parts.svc, value: parts.svc.value ?? svcConfigSchema.parse({}) }
  const snapshot = snapshotOf({ ...parts, svc }, noProviders, null)
  return layPlugins(await declaredPlugins({ config: { snapshot, paths }, clock: createSystemClock(), log: quietLog }))
}

const quiet = (): void => {}
const quietLog: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }
