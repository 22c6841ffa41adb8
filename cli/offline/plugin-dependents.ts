import type { Paths } from '../../kernel/contract/index.js'
import { checkHome } from './config/check-home.js'

/** What depends on the plugins of a package. */
export interface Dependents {
  readonly slots: readonly string[]
  readonly plugins: readonly string[]
}

/** As far as it can be told without a gateway: by what the plugins of a home declare. */
export async function dependentsOf (
  paths: Paths, env: Readonly<Record<string, string | undefined>>, packageName: string
): Promise<Dependents> {
  const { snapshot, plugins } = await checkHome(paths, env)
  const own = plugins.filter(({ origin }) => origin === `package:${packageName}` || origin.startsWith(`package:${packageName}@`))
  const providers = new Set(own.flatMap(plugin => plugin.providers.map(({ name }) => name)))
  const runtimes = new Set<string | null>(own.flatMap(plugin => plugin.runtimes.map(({ name }) => name)))
  const services = new Set(own.flatMap(({ plugin }) => plugin?.provides ?? []).map(({ id }) => id))
  return {
    slots: [...snapshot?.slots.values() ?? []].filter(({ provider, runtime }) => providers.has(provider) || runtimes.has(runtime))
      .map(({ name }) => name),
    plugins: plugins.filter(({ plugin }) => Object.values(plugin?.requires ?? {}).some(({ id }) => services.has(id)))
      .map(({ name }) => name)
  }
}
