import { join, resolve } from 'node:path'
import type { Paths } from '../contract/index.js'

export interface PathOptions {
  /** Wins over SVC_HOME. */
  readonly home?: string
}

/**
 * Where everything lives: `/etc/svc` and `/var/lib/svc`, or both below SVC_HOME. Pure: touches no file.
 * A relative SVC_HOME is taken from the working directory once, here, so that a later chdir changes nothing.
 * `models` is the default store; SVC_MODEL_STORE replaces it (`storeOf` in kernel/models weighs it against svc.toml).
 */
export function resolvePaths (env: Readonly<Record<string, string | undefined>>, options: PathOptions = {}): Paths {
  const given = options.home ?? env.SVC_HOME
  const home = given === undefined || given === '' ? null : resolve(given)
  const root = home ?? '/'
  const etc = join(root, 'etc', 'svc')
  const state = join(root, 'var', 'lib', 'svc')
  return Object.freeze({
    home,
    etc,
    state,
    slots: join(etc, 'slots'),
    models: modelStoreOverride(env) ?? join(state, 'models'),
    registry: join(state, 'registry', 'registry.toml'),
    plugins: join(state, 'plugins'),
    database: join(state, 'svc.db'),
    secretsEnv: join(etc, 'api.env')
  })
}

/** SVC_MODEL_STORE made absolute, or null. Top precedence for the model store. */
export function modelStoreOverride (env: Readonly<Record<string, string | undefined>>): string | null {
  const given = env.SVC_MODEL_STORE
  return given === undefined || given === '' ? null : resolve(given)
}
