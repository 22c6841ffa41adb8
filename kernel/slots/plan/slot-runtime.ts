import { svcError, type NamedSlotConfig, type ProviderCatalog } from '../../contract/index.js'
import type { EngineForm } from '../../contract/provider/engine-runtime.js'

/** What slots can be run by. */
export interface RuntimeChoice {
  /** That of the default. */
  readonly form: EngineForm
  /** Of a driver by its name; null where there is none of that name. Absent: drivers of plugins are not known here. */
  readonly formOf?: (name: string) => EngineForm | null
  /** Drivers that have a name; another list whenever it changed. */
  readonly names?: () => readonly string[]
}

/** What a slot asks for: as its file says, else as its provider does. Null: the default. */
export function runtimeOf (
  { runtime, provider }: Pick<NamedSlotConfig, 'runtime' | 'provider'>, providers: Pick<ProviderCatalog, 'get'>
): string | null {
  return runtime ?? providers.get(provider)?.runtime ?? null
}

/** A process everywhere, a container only where there is a container engine, else what the driver takes. */
export function formOfRuntime (asked: string | null, runtimes: RuntimeChoice): EngineForm {
  if (asked === 'process') return 'process'
  const named = namedDriver(asked)
  if (named === null) return runtimes.form
  return runtimes.formOf?.(named) ?? (named === 'docker' || named === 'podman' ? 'container' : runtimes.form)
}

/** Null for the words that mean a form, which whatever takes it by default runs. */
export function namedDriver (asked: string | null): string | null {
  return asked === 'container' || asked === 'process' ? null : asked
}

/** Throws `slot.config_error` where a slot asks for a driver that does not exist. */
export function assertRuntime ({ name }: NamedSlotConfig, driver: string | null, { formOf, names }: RuntimeChoice): void {
  if (driver === null || formOf === undefined || formOf(driver) !== null) return
  const known = ['container', 'process', ...names?.() ?? []].join(', ')
  throw svcError('slot.config_error', `slot '${name}' asks for runtime '${driver}', which no plugin brings; there are ${known}`,
    { param: 'runtime', details: { slot: name } })
}
