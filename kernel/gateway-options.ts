import type { AnyPlugin, Clock, Installation, Logger } from './contract/index.js'
import type { FileOps } from './config/files/atomic-file.js'
import type { MemoryPool } from './hardware/memory-pools.js'
import type { BuiltinPlugin } from './host/packages/discover.js'
import type { ContainerRuntime } from './contract/provider/engine-runtime.js'
import type { HealthProbe } from './slots/life/watch/health.js'

export interface GatewayOptions {
  /** The plugins that ship with the gateway; the kernel names none of them. */
  readonly builtins?: readonly BuiltinPlugin[]
  /** Plugins handed over as objects: for tests and programs that embed the gateway. */
  readonly plugins?: readonly AnyPlugin[]
  /** Root that /etc/svc and /var/lib/svc are moved under; wins over SVC_HOME. */
  readonly home?: string
  /** Where another gateway runs on the home: wait until it is gone, and take over. Default is to refuse. */
  readonly standby?: boolean
  /** Environment to read; default is the process's. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Win over svc.toml. Port 0 takes any free one. */
  readonly host?: string
  readonly port?: number
  /** Tables laid over `[plugins.config.<name>]`, for this run only. */
  readonly pluginConfig?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** Whether enabled slots are loaded at the start; false leaves them to their first request, whatever the configuration says. */
  readonly autostart?: boolean
  /** Stop engines with the gateway, whatever the configuration says. */
  readonly stopEngines?: boolean
  /** Default is this package, which nothing starts again. */
  readonly installation?: Installation
  readonly log?: Logger
  /** Told `[server] log_level` as soon as it is known, and at every change. */
  readonly setLogLevel?: (level: string) => void
  readonly clock?: Clock
  /** Replaces the container runtime that would be chosen. Closed with the gateway. */
  readonly runtime?: ContainerRuntime
  readonly probe?: HealthProbe
  /** Replaces the file operations of changes of the configuration: for tests that stop in the middle of one. */
  readonly fileOps?: FileOps
  /** Replaces the look at the memory of host and GPUs, for pressure eviction. Must not reject. */
  readonly readMemory?: () => Promise<readonly MemoryPool[]>
  /** Root of the files that the hardware probe and its readings look into (/proc, /sys): for tests on recorded machines. */
  readonly hardwareRoot?: string
  /** Device nodes that count as there, instead of those in /dev: for tests on machines without a GPU. */
  readonly deviceNodes?: readonly string[]
  /** Take over `unhandledRejection` and `uncaughtException` of the process, so that a plugin's stray failure ends nothing. */
  readonly guardProcess?: boolean
  /** Check every `/api` answer against its schema: for tests. */
  readonly checkAnswers?: boolean
}
