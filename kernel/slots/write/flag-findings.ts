import { isSvcError, messageOf, type ConfigSnapshot, type ErrorCode, type Finding, type ProviderCatalog } from '../../contract/index.js'
import { configFiles } from '../../config/parts.js'
import { checkProfileFlags, checkStackFlags } from '../plan/argv/flag-texts.js'

/** Profiles and stacks that were written by hand, past the writers that refuse flags of the gateway's own. Pure. */
export function flagFindings (
  { profiles, stacks, slots }: Pick<ConfigSnapshot, 'profiles' | 'stacks' | 'slots'>, providers: ProviderCatalog
): readonly Finding[] {
  return [
    ...[...profiles.values()].filter(({ seed }) => !seed).flatMap(profile =>
      findingOf(configFiles.profiles, `profile.${profile.name}`, () => checkProfileFlags(profile.name, profile, providers))),
    ...[...stacks.values()].filter(({ seed }) => !seed).flatMap(stack =>
      findingOf(configFiles.stacks, `stack.${stack.slug}`, () => checkStackFlags(stack, slots, providers)))
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
