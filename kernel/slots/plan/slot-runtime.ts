import type { z } from 'zod'
import { svcError, type NamedSlotConfig, type ProviderCatalog } from '../../contract/index.js'
import { checkShape, type Checked } from '../../config/check/shape-check.js'
import type { EngineForm } from '../../contract/provider/engine-runtime.js'

/** What slots can be run by. */
export interface RuntimeChoice {
  /** That of the default. */
  readonly form: EngineForm
  /** Of a driver by its name; null where there is none of that name. Absent: drivers of plugins are not known here. */
  readonly formOf?: (name: string) => EngineForm | null
  /** Drivers that have a name; another list whenever it changed. */
  readonly names?: () => readonly string[]
  /** Whether a driver runs its engines on other machines. Absent: none does. */
  readonly isElsewhere?: (name: string) => boolean
  /** What a slot may say to a driver. Absent: nothing is known of that. */
  readonly optionsOf?: (name: string) => z.ZodType | undefined
  /** What of svc.toml a driver gives an engine whose slot says this to it. Absent: nothing. */
  readonly settingsOf?: (name: string, options: NamedSlotConfig['runtime_options']) => object
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

/** Whether a slot's engine runs on another machine: what this one has is not its to share then. */
export function runsElsewhere (
  slot: Pick<NamedSlotConfig, 'runtime' | 'provider'>, providers: Pick<ProviderCatalog, 'get'>, { isElsewhere }: RuntimeChoice
): boolean {
  const driver = namedDriver(runtimeOf(slot, providers))
  return driver !== null && isElsewhere?.(driver) === true
}

/** What a slot says to its driver, as that reads it, defaults filled in; or what is wrong with it. Pure. */
export function checkRuntimeOptions (
  { name, runtime_options: options }: NamedSlotConfig, driver: string | null, { formOf, optionsOf }: RuntimeChoice
): Checked<NamedSlotConfig['runtime_options']> {
  const schema = driver === null ? undefined : optionsOf?.(driver)
  if (schema !== undefined) {
    const checked = checkShape(schema, options, { audience: 'client', userPath: path => ['runtime_options', ...path] })
    return checked as Checked<NamedSlotConfig['runtime_options']>
  }
  if (formOf === undefined || Object.keys(options).length === 0) return { value: options, problems: [] }
  const why = driver === null ? 'needs a slot whose `runtime` is a driver from a plugin' : `is not an option of runtime '${driver}'`
  const message = `${why}; remove it with \`svc slot edit ${name} --runtime-option none\`, or send it as null`
  return { value: null, problems: [{ path: ['runtime_options'], message, unknown: false }] }
}

/** What of svc.toml goes into an engine beside what its slot says to the driver. */
export function settingsFor (
  { runtime_options: options }: NamedSlotConfig, driver: string | null, { settingsOf }: RuntimeChoice
): object {
  return driver === null ? {} : settingsOf?.(driver, options) ?? {}
}

/** Throws `slot.config_error` where a slot asks for a driver that does not exist. */
export function assertRuntime ({ name }: NamedSlotConfig, driver: string | null, { formOf, names }: RuntimeChoice): void {
  if (driver === null || formOf === undefined || formOf(driver) !== null) return
  const known = ['container', 'process', ...names?.() ?? []].join(', ')
  throw svcError('slot.config_error', `slot '${name}' uses runtime '${driver}', which no plugin provides; there are ${known}`,
    { param: 'runtime', details: { slot: name } })
}
