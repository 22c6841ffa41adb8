import type { AgentRules } from '../../schemas/agent-file.js'
import type { HardwareInfo } from '../../schemas/hardware.js'
import type { Manifest } from '../../schemas/manifest.js'
import type { NamedProfile } from '../../schemas/profile.js'
import type { SvcConfig, svcConfigSchema } from '../../schemas/svc-config.js'
import type { NamedToolServer } from '../../schemas/tool-server.js'
import type { ExternalProvider, Upstream } from '../../schemas/upstream.js'
import type { UpstreamTemplate } from '../../provider/upstream-template.js'
import type { ChangeOptions, ConfigDraft } from './config-draft.js'
import type { NamedSlotConfig } from '../../schemas/named-slot.js'

/** One thing wrong in one file. All problems of a load are reported together. */
export interface Diagnostic {
  /** Path below the configuration root, such as `slots/agent.toml`. */
  readonly file: string
  /** Dotted path of the key as the user wrote it; empty for the file as a whole. */
  readonly path: string
  /** What is wrong, what is allowed, and where sensible what to do. Never holds the submitted value of a secret. */
  readonly message: string
  readonly line?: number
}

/** Everything under the configuration root at one moment. Immutable; a change makes a new one. */
export interface ConfigSnapshot {
  readonly revision: number
  readonly svc: SvcConfig
  readonly slots: ReadonlyMap<string, NamedSlotConfig>
  /** What agents may call, by their files. */
  readonly agents: AgentRules
  /** Seeds and the operator's own; a seed's name always means the seed. */
  readonly profiles: ReadonlyMap<string, NamedProfile>
  readonly upstreams: readonly Upstream[]
  readonly providers: readonly ExternalProvider[]
  /** What rows of `providers` may name; plugins bring them. */
  readonly templates: readonly UpstreamTemplate[]
  /** Tool servers of others, by id. */
  readonly toolServers: ReadonlyMap<string, NamedToolServer>
  readonly manifest: Manifest
  readonly hardware: HardwareInfo
  /** What files of plugins say, by name. */
  readonly files: ReadonlyMap<string, unknown>
  /** Problems of this load. What they concern keeps its last good value, or is left out at the first load. */
  readonly diagnostics: readonly Diagnostic[]
}

export interface Paths {
  readonly home: string | null
  readonly etc: string
  readonly state: string
  readonly slots: string
  readonly models: string
  readonly registry: string
  readonly plugins: string
  readonly database: string
  readonly secretsEnv: string
}

export interface ConfigService {
  readonly snapshot: ConfigSnapshot
  readonly paths: Paths
  /** Of svc.toml, with the tables of plugins. */
  readonly schema: typeof svcConfigSchema
  /** Re-reads every file. What is broken keeps its last good value; the diagnostics say so. */
  reload (): Promise<ConfigSnapshot>
  /** Called after every change of the snapshot, in order of subscription. Returns the unsubscriber. */
  onChange (listener: (next: ConfigSnapshot, previous: ConfigSnapshot) => void): () => void
  /** A slot as it would be, with all defaults; writes nothing. Throws as `createSlot` does. */
  checkSlot (name: string, config: Readonly<Record<string, unknown>>): NamedSlotConfig
  /** The slot file as the user wrote it, as an object; null when there is none. */
  readSlotFile (name: string): Promise<Record<string, unknown> | null>
  /**
   * Creates a slot file. Throws `validation.invalid`, `validation.unknown_keys`, or `slot.config_error` when it exists.
   * `check` sees the result before anything is written, with the lock held, and may throw.
   */
  createSlot (name: string, config: Readonly<Record<string, unknown>>,
    check?: (next: NamedSlotConfig) => void): Promise<NamedSlotConfig>
  /**
   * Merges `patch` into the file: scalars and lists replace, sub-tables merge one level deep, null deletes the
   * key. `check` sees the result before anything is written and may throw. Keeps comments and placements.
   */
  patchSlot (name: string, patch: Readonly<Record<string, unknown>>,
    check?: (next: NamedSlotConfig, previous: NamedSlotConfig) => void): Promise<NamedSlotConfig>
  deleteSlot (name: string): Promise<void>
  /**
   * Changes several files as one: `work` shapes a draft, then every file that differs is written, all of them or none,
   * also when the process dies in between; the snapshot changes once. Nothing is written when `work` throws. The lock is
   * held all the while: `work` is quick and calls no other writer of this service, which would wait for it for ever.
   * Throws `config.write_failed`.
   */
  change<T> (work: (draft: ConfigDraft) => Promise<T>, options?: ChangeOptions): Promise<T>
  /**
   * Merges into svc.toml, deep; null deletes. Validates before it writes, and `check` sees the result before anything is
   * written and may throw. Throws `validation.invalid`, `validation.unknown_keys`, `config.parse_error`, `config.write_failed`,
   * and what `requireModelStore` throws of another store.
   */
  patchSvc (patch: Readonly<Record<string, unknown>>, check?: (next: SvcConfig) => void): Promise<SvcConfig>
  /** Throws `models.store_*` for a path that cannot be the model store: no folder, or not readable and writable. */
  requireModelStore (path: string): Promise<void>
  /** A value of api.env, else of the process environment. */
  secret (name: string): string | undefined
  /** A text with the values of api.env taken out (those of 6 characters or more): for what is logged or shown. */
  withoutSecrets (text: string): string
  /** Names in api.env, sorted. */
  secretNames (): readonly string[]
  /** Writes one line of api.env (mode 0600). Throws `validation.invalid` for a name or value that it cannot hold. */
  setSecret (name: string, value: string): Promise<void>
  /** Whether there was one. */
  deleteSecret (name: string): Promise<boolean>
}
