import { isSvcError, messageOf, type ConfigFileDefinition, type ConfigSnapshot, type ErrorCode, type Finding, type ProviderCatalog } from '../../contract/index.js'
import { rowsOf } from '../../config/owned-files.js'
import { configFiles } from '../../config/parts.js'
import { checkProfileFlags, flagRules } from '../plan/argv/flag-texts.js'

/**
 * Profiles, and rows of files that plugins own, which were written by hand, past the writers that refuse what is wrong with
 * them beyond their shape. Pure.
 */
export function rowFindings (
  { profiles, files, slots }: Pick<ConfigSnapshot, 'profiles' | 'files' | 'slots'>, owned: readonly ConfigFileDefinition[],
  providers: ProviderCatalog
): readonly Finding[] {
  const world = { slots, providers, flags: flagRules(providers) }
  return [
    ...[...profiles.values()].filter(({ seed }) => !seed).flatMap(profile =>
      findingOf(configFiles.profiles, `profile.${profile.name}`, () => checkProfileFlags(profile.name, profile, providers))),
    ...owned.flatMap(({ file, rows }) => rows?.check === undefined ? [] : [...rowsOf(rows, files.get(file))]
      .flatMap(([name, row]) => findingOf(file, `${rows.key}.${name}`, () => rows.check?.(name, row, world))))
  ]
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
