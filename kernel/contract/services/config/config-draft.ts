import type { ProviderWords } from '../../provider/provider-words.js'
import type { NamedProfile, Profile } from '../../schemas/profile.js'
import type { SvcConfig } from '../../schemas/svc-config.js'
import type { NamedToolServer } from '../../schemas/tool-server.js'
import type { ExternalProvider, Upstream } from '../../schemas/upstream.js'
import type { NamedSlotConfig } from '../../schemas/named-slot.js'
import type { RegistryFile } from '../models.js'

type Row = Readonly<Record<string, unknown>>

/** The rows of a file that is one list of tables, as the file has them. Every other row keeps each byte. */
export interface ConfigRows<T> {
  ids (): Promise<readonly string[]>
  /** Throws `validation.invalid`, `validation.unknown_keys`, or `upstream.already_exists`. */
  create (row: Row): Promise<T>
  /** Scalars and lists replace, tables merge, null deletes. Throws as `create` does, or `upstream.not_found`. */
  patch (id: string, patch: Row): Promise<T>
  /** Throws `upstream.not_found`. */
  delete (id: string): Promise<void>
}

/**
 * The configuration as it would be with all that was changed on this draft so far. Methods change the draft and no file;
 * comments and placements of files are kept. It ends with the `change` that made it.
 */
export interface ConfigDraft {
  readonly svc: SvcConfig
  readonly slots: ReadonlyMap<string, NamedSlotConfig>
  readonly profiles: ReadonlyMap<string, NamedProfile>
  /** As `ConfigService.checkSlot`. */
  checkSlot (name: string, config: Readonly<Record<string, unknown>>): NamedSlotConfig
  /** As `ConfigService.createSlot`. */
  createSlot (name: string, config: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  /** As `ConfigService.patchSlot`. */
  patchSlot (name: string, patch: Readonly<Record<string, unknown>>): Promise<NamedSlotConfig>
  deleteSlot (name: string): Promise<void>
  /** Adds, replaces or, with null, removes. Throws `profiles.seed_immutable`; null for one that is not there does nothing. */
  putProfile (name: string, profile: Profile | null): Promise<void>
  /** `[[upstream]]` of upstreams.toml, by name. */
  readonly upstreams: ConfigRows<Upstream>
  /** `[[provider]]` of providers.toml, by name, else by catalogue id. */
  readonly providers: ConfigRows<ExternalProvider>
  /** Files of `mcp-servers/`. Throws `mcp.already_installed` and `mcp.not_found` where `ConfigRows` says an upstream's. */
  readonly toolServers: Omit<ConfigRows<NamedToolServer>, 'create' | 'ids'> & { create (id: string, row: Row): Promise<NamedToolServer> }
  /** As `ConfigService.patchSvc`; once in a draft. */
  patchSvc (patch: Row, check?: (next: SvcConfig) => void): Promise<SvcConfig>
  /** What files of plugins say on this draft, by name. */
  readonly files: ReadonlyMap<string, unknown>
  /**
   * Adds, replaces or, with null, removes a row of a file with `rows`; null for one that is not there does nothing. What stays
   * is left as the user wrote it. Throws `validation.invalid` and `validation.unknown_keys`, and what `rows.check` throws.
   */
  putRow (file: string, name: string, row: object | null): Promise<void>
  /** As `ConfigFile.patch`, of a file that a plugin owns. */
  patchFile (file: string, patch: Row): Promise<unknown>
  /**
   * Changes the table that such a file holds, in ways that a merge cannot; values are TOML's, without null. What was wrong before
   * may stay so. Resolves with what the file says then. Throws as `ConfigFile.patch`.
   */
  editFile (file: string, edit: (data: Row, words: ProviderWords) => Row): Promise<unknown>
  /** The model registry, which changes together with the configuration (`ModelRegistry.change`). */
  putRegistry (file: RegistryFile): Promise<void>
  /** A file right below the state root that changes together with the configuration; null removes it. */
  putState (file: string, content: string | null): Promise<void>
  /**
   * A file right below the configuration root that holds secrets of the caller: mode 0600, whatever it was; null removes it.
   * The kernel does not read it, so one that is damaged can be replaced. Whether there was one before.
   */
  putPrivate (file: string, content: string | null): Promise<boolean>
}

export interface ChangeOptions {
  /** The draft is thrown away; everything that can be refused is refused anyway. */
  readonly dryRun?: boolean
}
