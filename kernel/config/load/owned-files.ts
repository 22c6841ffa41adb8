import { join } from 'node:path'
import type {
  ConfigFile, ConfigFileDefinition, ConfigRowsDefinition, ConfigService, Paths, ProviderWords
} from '../../contract/index.js'
import { located } from './load-file.js'
import type { ConfigParts, Part } from '../parts/config-parts.js'
import { readNamed } from '../schema/catalog-files.js'
import { readFormat } from './file-format.js'
import { checkShape } from '../check/shape-check.js'
import { readToml } from '../toml/toml-file.js'

/** Files of plugins, by name. Those whose owner is another now begin anew. Never rejects for anything that they hold. */
export async function loadOwned (
  { etc }: Paths, owned: readonly ConfigFileDefinition[], previous: ConfigParts | null, words: ProviderWords,
  files: readonly string[] | null = null
): Promise<ConfigParts['owned']> {
  const loaded = await Promise.all(owned.map(async definition => {
    const before = previous?.owned.get(definition.file)
    const isKept = before?.definition === definition
    if (isKept && files !== null && !files.includes(definition.file)) return [definition.file, before] as const
    return [definition.file, { definition, ...await loadOne(etc, definition, isKept ? before.value : null, words) }] as const
  }))
  return new Map(loaded)
}

async function loadOne (
  etc: string, definition: ConfigFileDefinition, lastGood: unknown, words: ProviderWords
): Promise<Part<unknown>> {
  const { file, schema, rows, format } = definition
  const fallback = (): unknown => lastGood ?? schema.parse({})
  const read = await readToml(join(etc, file), file)
  if (read.status === 'missing') return { value: schema.parse({}), diagnostics: [] }
  if (read.status === 'bad') return { value: fallback(), diagnostics: [read.diagnostic] }
  if (rows !== undefined) {
    const named = readNamed({ ...rows, seeds: rows.builtin ?? new Set() }, read.data, rowsOf(rows, lastGood))
    return { value: { [rows.key]: Object.fromEntries(named.rows) }, diagnostics: await located(file, read.text, named.problems) }
  }
  if (format !== undefined) {
    const said = readFormat(format, read.data, { lastGood: fallback(), words }, { audience: 'file' })
    return { value: said.value, diagnostics: await located(file, read.text, said.problems) }
  }
  const { value, problems } = checkShape(schema, read.data, { audience: 'file' })
  return { value: problems.length === 0 ? value : fallback(), diagnostics: await located(file, read.text, problems) }
}

/** What a file with rows says, row by row. */
export function rowsOf ({ key }: ConfigRowsDefinition, value: unknown): ReadonlyMap<string, Record<string, unknown>> {
  const table = (value as Readonly<Record<string, Record<string, Record<string, unknown>>>> | null | undefined)?.[key]
  return new Map(Object.entries(table ?? {}))
}

/** Throws a `TypeError` where no plugin that is up owns it. */
export function ownedDefinition (owned: readonly ConfigFileDefinition[], file: string): ConfigFileDefinition {
  const definition = owned.find(own => own.file === file)
  if (definition === undefined) throw new TypeError(`no active plugin owns the configuration file '${file}'`)
  return definition
}

/** What its plugin holds of a file, until the signal aborts. */
export function ownedFile<T> (
  config: ConfigService, { file, schema }: ConfigFileDefinition, signal: AbortSignal
): ConfigFile<T> {
  const of = (files: ReadonlyMap<string, unknown>): T => (files.has(file) ? files.get(file) : schema.parse({})) as T
  return {
    get value () { return of(config.snapshot.files) },
    onChange: listener => {
      const end = config.onChange((next, previous) => {
        if (next.files.get(file) !== previous.files.get(file)) listener(of(next.files), of(previous.files))
      })
      signal.addEventListener('abort', end, { once: true })
      return () => {
        signal.removeEventListener('abort', end)
        end()
      }
    },
    patch: async patch => await config.change(async draft => await draft.patchFile(file, patch)) as T
  }
}
