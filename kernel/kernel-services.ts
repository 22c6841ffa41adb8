import {
  svcConfigSchema, type ApprovalRows, type Clock, type ConfigSnapshot, type EventBus, type JobStore, type Logger,
  type ModelRegistry, type Programs, type SettingsTable
} from './contract/index.js'
import { isOwnTable } from './contract/plugin/settings-table.js'
import { createConfigService, type KernelConfig } from './config/store.js'
import { LateWriteRules } from './config/write/write-rules.js'
import { resolvePaths } from './config/paths.js'
import { createActivityLog, type ActivitySettings, type OwnedActivityLog } from './events/activity-log.js'
import { createEventBus } from './events/event-bus.js'
import { rowOfEvent } from './events/event-mirror.js'
import type { GatewayOptions } from './gateway-options.js'
import { createHardwareService, type CachingHardwareService } from './hardware/hardware-service.js'
import { createNvidiaReader } from './hardware/nvidia-smi.js'
import { createJobStore } from './jobs/job-store.js'
import { createModelFiles, type ClosableModelFiles } from './models/model-files.js'
import { sweepTempFiles } from './config/files/atomic-file.js'
import { storeTemp } from './config/files/written-folders.js'
import { createModelRegistry } from './models/registry.js'
import type { ContainerRuntime, RuntimeDefinition } from './contract/provider/engine-runtime.js'
import { rememberHosts } from './runtime/engine-hosts.js'
import { endFormerEngines } from './runtime/former-engines.js'
import { RuntimePrograms } from './runtime/programs/programs.js'
import { openProcessRuntime } from './runtime/process/process-runtime.js'
import { RuntimeSet } from './runtime/runtime-set.js'
import { selectRuntime, type SelectRuntimeOptions } from './runtime/select-runtime.js'
import { createActivityTable } from './state/activity-table.js'
import { createApprovalTable } from './state/approval-table.js'
import { openDatabase, type Database } from './state/database.js'
import { createWithLock, type HeldLock } from './state/file-lock.js'
import { acquireHomeLock } from './state/home-lock.js'
import { engineKeys } from './state/engine-keys.js'
import { PluginTables } from './state/plugin-tables.js'
import { instanceId } from './state/instance-id.js'

/** What everything else stands on. Opened in order, closed in reverse by `closeKernel`. */
export interface KernelServices {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
  readonly lock: HeldLock
  readonly instance: string
  /** Secret of a slot's engines: the same as long as the home is. */
  readonly engineKey: (slot: string) => string
  readonly config: KernelConfig
  /** Told what rows may say once the engines are known. */
  readonly rules: LateWriteRules
  readonly database: Database
  readonly events: EventBus
  readonly activity: OwnedActivityLog
  readonly approvals: ApprovalRows
  readonly jobs: JobStore
  readonly tables: PluginTables
  readonly models: ModelRegistry
  readonly modelFiles: ClosableModelFiles
  readonly hardware: CachingHardwareService
  readonly runtime: RuntimeSet
  /** Opens the drivers that plugins bring and those that slots ask for, before anything is asked of engines. Never rejects. */
  readonly openDrivers: (asked: ReadonlySet<string>) => Promise<void>
  readonly programs: Programs
}

/** Rejects with what is wrong with the home; leaves nothing open behind when it does. */
export async function openKernel (
  options: GatewayOptions, clock: Clock, log: Logger, signal?: AbortSignal
): Promise<KernelServices> {
  const env = options.env ?? process.env
  const paths = resolvePaths(env, options.home === undefined ? {} : { home: options.home })
  const lock = await acquireHomeLock(paths, 'starting', {
    standby: options.standby === true,
    waiting: ({ pid, stopping }) => {
      const doing = stopping ? 'is finishing its last answers; waiting for it' : 'is running; waiting to take over'
      log.warn(`another gateway${pid === null ? '' : ` (process ${pid})`} on this home ${doing}`)
    },
    ...(signal === undefined ? {} : { signal })
  })
  let database: Database | null = null
  try {
    const withLock = createWithLock()
    const rules = new LateWriteRules()
    const injected = options.fileOps === undefined ? {} : { ops: options.fileOps }
    const config = await createConfigService({ paths, env, log, clock, withLock, rules, tables: tablesOf(options), ...injected })
    const applyLevel = (snapshot: ConfigSnapshot): void => options.setLogLevel?.(snapshot.svc.server.log_level)
    applyLevel(config.snapshot)
    config.onChange(applyLevel)
    const [opened, instance, engineKey, models] = await Promise.all([
      openDatabase({ path: paths.database }),
      instanceId(paths.state),
      engineKeys(paths.state),
      createModelRegistry({
        paths, env, log, clock, withLock, rules, settings: () => config.snapshot.svc.models,
        // every change does that first, also an empty one
        recover: () => config.change(async () => undefined)
      })
    ])
    database = opened
    await sweepTempFiles(storeTemp(models.store), clock.now())
    const clean = (text: string): string => config.withoutSecrets(text)
    const activity = createActivityLog({
      store: createActivityTable(opened), clock, log, clean, settings: () => activitySettings(config.snapshot.svc.activity, env)
    })
    config.onChange((next, previous) => {
      if (next.svc.activity !== previous.svc.activity) activity.prune()
    })
    const events = createEventBus({
      clock,
      clean,
      onEvent: event => {
        const row = rowOfEvent(event)
        if (row !== null) activity.recordSoon(row)
      }
    })
    const hardware = createHardwareService({
      paths,
      clock,
      log,
      cached: config.snapshot.hardware,
      diskPath: models.store,
      nvidia: createNvidiaReader(env, clock),
      onWritten: () => config.reload(),
      ...(options.hardwareRoot === undefined ? {} : { root: options.hardwareRoot })
    })
    const selecting: SelectRuntimeOptions = {
      settings: config.snapshot.svc.runtime, stateDir: paths.state, env, clock, log, ...(signal === undefined ? {} : { signal })
    }
    const [drivers] = await Promise.all([
      options.runtime === undefined ? openDefaults(selecting) : [options.runtime] as const,
      hardware.ensureProbed()
    ])
    const runtime: RuntimeSet = new RuntimeSet(drivers, {
      clock,
      log,
      instance,
      own: options.runtime === undefined ? containerEngines(selecting) : [],
      opened: () => void rememberHosts(paths.state, runtime.hosts(), log)
    })
    const openDrivers = async (asked: ReadonlySet<string>): Promise<void> => {
      await runtime.open(asked)
      if (options.runtime !== undefined) return
      const withinMs = config.snapshot.svc.runtime.connect_timeout_s * 1000
      await endFormerEngines({ stateDir: paths.state, instance, env, clock, log, withinMs, hosts: runtime.hosts(), asked })
    }
    const jobs = createJobStore(opened, clock)
    const approvals = createApprovalTable(opened, clock)
    const tables = new PluginTables(opened)
    const modelFiles = createModelFiles(clock, () => config.providers.modelNames)
    return {
      env, clock, log, lock, instance, engineKey, config, rules, database, events, activity, approvals, jobs, tables, models,
      modelFiles, hardware,
      runtime,
      openDrivers,
      programs: new RuntimePrograms({ runtime, instance, path: () => env.PATH ?? '' })
    }
  } catch (error) {
    database?.close()
    await lock.release()
    throw error
  }
}

/** The default, and child processes beside it. */
async function openDefaults (options: SelectRuntimeOptions): Promise<readonly [ContainerRuntime, ...ContainerRuntime[]]> {
  const { stateDir, env, clock, log } = options
  const selected = await selectRuntime(options)
  if (selected.form === 'process') return [selected]
  try {
    const reason = 'slots with runtime `process` run alongside the container engine'
    return [selected, await openProcessRuntime({ stateDir, env, clock, log, reason })]
  } catch (error) {
    await selected.close()
    throw error
  }
}

/** Beside the default, for slots that ask for one by name. */
function containerEngines (options: SelectRuntimeOptions): readonly RuntimeDefinition[] {
  const { connect_timeout_s } = options.settings
  return (['docker', 'podman'] as const).map(driver => ({
    name: driver, form: 'container', open: signal => selectRuntime({ ...options, settings: { driver, connect_timeout_s }, signal, isBeside: true })
  }))
}

export async function closeKernel (kernel: KernelServices): Promise<void> {
  await kernel.runtime.close()
  await kernel.hardware.close()
  await kernel.modelFiles.close()
  kernel.activity.close()
  kernel.database.close()
  await kernel.lock.release()
}

/** SVC_ACTIVITY_RETENTION_DAYS wins over svc.toml; what is no whole number of days does not count. */
/** Those of plugins that are switched off too: what they mean in svc.toml does not depend on it. */
function tablesOf ({ builtins = [], plugins = [] }: GatewayOptions): readonly SettingsTable[] {
  const all = [...builtins, ...plugins].flatMap(({ settings }) => settings ?? [])
  return all.filter((table, i) => isOwnTable(table.name) || all.findIndex(({ name }) => name === table.name) === i)
}

function activitySettings (settings: ActivitySettings, env: KernelServices['env']): ActivitySettings {
  const { SVC_ACTIVITY_RETENTION_DAYS: text = '' } = env
  const days = svcConfigSchema.shape.activity.unwrap().shape.retention_days.safeParse(/^\d+$/.test(text) ? Number(text) : null)
  return days.success ? { ...settings, retention_days: days.data } : settings
}
