import { isAbsolute, join } from 'node:path'
import type { Paths, StoreOwner, SvcConfig } from '../contract/index.js'
import { modelStoreOverride } from '../config/paths.js'

/** SVC_MODEL_STORE, then `[models] store`, then its deprecated name, then the folder below the state root. Pure. */
export function storeOf (
  env: Readonly<Record<string, string | undefined>>, settings: SvcConfig['models'], paths: Paths
): string {
  return modelStoreOverride(env) ?? (settings.store !== '' ? settings.store : settings.pull_root ?? paths.models)
}

/** Its variable, then its setting, then its folder in the store. Pure. */
export function engineStoreOf (
  { name, models }: StoreOwner, env: Readonly<Record<string, string | undefined>>,
  settings: SvcConfig['models'], paths: Paths
): string {
  const { folder, variable, setting } = models?.store ?? { folder: name }
  const override = variable === undefined ? '' : env[variable] ?? ''
  if (isAbsolute(override)) return override
  const own = setting === undefined ? '' : (settings as Readonly<Record<string, unknown>>)[setting]
  return typeof own === 'string' && own !== '' ? own : join(storeOf(env, settings, paths), folder)
}
