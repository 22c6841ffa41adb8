import { isAbsolute, join } from 'node:path'
import type { Paths, SvcConfig } from '../contract/index.js'
import { modelStoreOverride } from '../config/paths.js'

/** SVC_MODEL_STORE, then `[models] store`, then its deprecated name, then the folder below the state root. Pure. */
export function storeOf (
  env: Readonly<Record<string, string | undefined>>, settings: SvcConfig['models'], paths: Paths
): string {
  return modelStoreOverride(env) ?? (settings.store !== '' ? settings.store : settings.pull_root ?? paths.models)
}

/** SVC_FLM_MODELS_DIR, then `[models] flm_store`, then a folder in the store. Pure. */
export function engineStoreOf (
  env: Readonly<Record<string, string | undefined>>, settings: SvcConfig['models'], paths: Paths
): string {
  const override = env.SVC_FLM_MODELS_DIR ?? ''
  if (isAbsolute(override)) return override
  return settings.flm_store !== '' ? settings.flm_store : join(storeOf(env, settings, paths), 'flm', 'models')
}
