import {
  isSvcError, messageOf, type ConfigFileDefinition, type ConfigSnapshot, type ErrorCode, type FileWorld, type Finding,
  type ProviderCatalog
} from '../../contract/index.js'
import { rowsOf } from '../../config/load/owned-files.js'
import { configFiles } from '../../config/parts/config-parts.js'
import { checkProfileFlags, flagRules } from '../plan/argv/flag-texts.js'

/**
 * Profiles, and rows of files that plugins own, which were written by hand, past the writers that refuse what is wrong with
 * them beyond their shape; and what such files say that others contradict. Pure.
 */
export function ownedFindings (
  { profiles, files, slots }: Pick<ConfigSnapshot, 'profiles' | 'files' | 'slots'>, owned: readonly ConfigFileDefinition[],
  { providers, models }: { readonly providers: ProviderCatalog, readonly models: FileWorld['models'] }
): readonly Finding[] {
  const world = { slots, providers, models, flags: flagRules(providers) }
  return [
    ...[...profiles.values()].filter(({ seed }) => !seed).flatMap(profile =>
      findingOf(configFiles.profiles, `profile.${profile.name}`, () => checkProfileFlags(profile.name, profile, providers))),
    ...owned.flatMap(({ file, rows }) => rows?.check === undefined ? [] : [...rowsOf(rows, files.get(file))]
      .flatMap(([name, row]) => findingOf(file, `${rows.key}.${name}`, () => rows.check?.(name, row, world)))),
    ...owned.flatMap(definition => files.has(definition.file) ? beyondShape(definition, files.get(definition.file), world) : [])
  ]
}

function beyondShape (definition: ConfigFileDefinition, value: unknown, world: FileWorld): Finding[] {
  return (definition.findings?.(value, world) ?? []).map(found => ({ ...found, file: definition.file }))
}

function findingOf (file: string, row: string, check: () => void): Finding[] {
  try {
    check()
    return []
  } catch (error) {
    const { code, param } = isSvcError(error) ? error : { code: 'slot.config_error', param: undefined }
    return [{ file, path: param == null ? row : `${row}.${param}`, message: messageOf(error), code: code as ErrorCode, severity: 'error' }]
  }
}
