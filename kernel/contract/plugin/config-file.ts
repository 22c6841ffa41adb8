import type { z } from 'zod'
import type { ProviderCatalog, ProviderWish } from './core-refs.js'
import type { ProviderWords } from '../provider/provider-words.js'
import type { Profile } from '../schemas/profile.js'
import type { Finding } from '../services/config/config-check.js'
import type { ConfigDraft } from '../services/config/config-draft.js'
import type { ModelRegistry } from '../services/models.js'
import type { NamedSlotConfig } from '../schemas/named-slot.js'

/** A file below the configuration root that a plugin owns. */
export interface ConfigFileDefinition<S extends z.ZodType = z.ZodType> {
  /** Right below the root: lower case letters, digits and `-`, then `.toml`. None that the gateway has itself. */
  readonly file: string
  /** Of the whole file, or of what `format` reads. Takes an empty table, which is what a file says that is not there. */
  readonly schema: S
  /** For a file of tables by name: each is judged by itself, and written by `ConfigDraft.putRow`. */
  readonly rows?: ConfigRowsDefinition
  /** For a file that neither of the two can describe: old names and formats, parts that are judged one by one. */
  readonly format?: ConfigFileFormat<z.output<S>>
  /** What is wrong between this file and others, for `svc config validate` and `GET /api/status`. Pure. */
  findings? (value: z.output<S>, world: FileWorld): ReadonlyArray<Omit<Finding, 'file'>>
  /** What the file has that a slot's engine serves. */
  readonly dependents?: SlotDependents<z.output<S>>
}

type Table = Readonly<Record<string, unknown>>

/** How a file is read. Both are pure; the file is read again when the words of providers are others. */
export interface ConfigFileFormat<T = unknown> {
  /** What the file says; of what is broken, as small as the break is, what `lastGood` has. */
  read (data: Table, reading: ConfigReading<T>): T
  /**
   * What the name of a copy ends with that the first write in the present format leaves of one in an old format, such as
   * `.v1.bak`; null for a file that is in the present one.
   */
  backup? (data: Table): string | null
}

/** What a file is read with. */
export interface ConfigReading<T = unknown> {
  readonly lastGood: T
  readonly words: ProviderWords
  /** Reports every key right in the file that is none of these. */
  known (...keys: readonly string[]): void
  /** Reports what is wrong at a key. */
  report (path: readonly string[], message: string): void
  /** What a schema makes of a value at a key; null where it is wrong, which is reported, key by key. */
  check<S extends z.ZodType> (schema: S, value: unknown, path: readonly string[]): z.output<S> | null
}

/**
 * What lives off a slot besides slots. Deleting the slot is refused with `slot.in_use`, which names it; with force it is
 * taken out in the same change.
 */
export interface SlotDependents<T = unknown> {
  /** What one of them is called in texts. */
  readonly one: string
  /** Their key in `details` of the refusal. */
  readonly all: string
  /** Names of those that need this slot, one that is configured, and no other of `slots` instead. Pure. */
  of (value: T, slot: NamedSlotConfig, slots: ReadonlyMap<string, NamedSlotConfig>): readonly string[]
  /** Takes one of them off the slot. */
  drop (draft: ConfigDraft, name: string): Promise<void>
}

/**
 * Tables by name, `[<key>.<name>]`: a broken one keeps what it said when it was good last, or is left out, and the others
 * stand. What the file says then is `{ [key]: { [name]: row } }`.
 */
export interface ConfigRowsDefinition {
  readonly key: string
  /** Of one table. */
  readonly schema: z.ZodObject
  /** Names that the plugin has itself: a table of such a name is reported and not used. */
  readonly builtin?: ReadonlySet<string>
  /**
   * Throws for what no schema knows. Asked before each write of a row, and of all rows of the file for the findings of
   * `svc config validate` and `GET /api/status`. Pure.
   */
  readonly check?: (name: string, row: unknown, world: RowWorld) => void
}

/** What a row may be judged by. */
export interface RowWorld {
  readonly slots: ReadonlyMap<string, NamedSlotConfig>
  readonly providers: Pick<ProviderCatalog, 'get' | 'list' | 'defaultFor' | 'nameFor' | 'ownerOf'>
  readonly flags: FlagRules
}

/** What a file may be judged by as a whole. */
export interface FileWorld extends RowWorld {
  readonly models: Pick<ModelRegistry, 'get'>
}

/**
 * Texts of engine flags. Each throws `slot.managed_arg_denied` for what the gateway owns, `slot.config_error` for an open
 * quote.
 */
export interface FlagRules {
  /** Flags that win over the fields of a slot of the engine that is wished for. */
  slot (text: string | readonly string[], wish: ProviderWish, at: FlagPlace): void
  /** Those of a profile; `param` says where they are. */
  profile (name: string, profile: Profile, param: string): void
}

/** Where flags are: the slot that they are for, what the refusal calls them, and their path in the row. */
export interface FlagPlace {
  readonly slot: string
  readonly what: string
  readonly param: string
}

/** What a plugin holds of its file. It is read, checked, told of, written and recovered as the gateway's own files are. */
export interface ConfigFile<T> {
  /**
   * What it says; while it is broken, what it said when it was good last, and before that what an empty one says. Read by the
   * time of `onStart`; the same object until it changes.
   */
  readonly value: T
  /** Called after each change, however it came about. Ends with the plugin; returns the unsubscriber. */
  onChange (listener: (next: T, previous: T) => void): () => void
  /**
   * Tables merge, everything else replaces, null deletes; comments stay. Resolves with what the file says then. Throws
   * `validation.invalid`, `validation.unknown_keys`, `config.parse_error`, `config.write_failed`; nothing is written then.
   */
  patch (patch: Readonly<Record<string, unknown>>): Promise<T>
}
