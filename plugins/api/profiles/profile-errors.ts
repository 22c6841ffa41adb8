import { svcError, type SvcError } from 'svc-gateway/plugin'
import { profilesError } from './errors.js'

export function profileNotFound (name: string): SvcError {
  return svcError('profiles.not_found', `no such profile: '${name}'; see GET /api/profiles`, { param: 'name', details: { name } })
}

export function profileExists (name: string): SvcError {
  return profilesError('profiles.exists', `profile '${name}' already exists; choose another name, or change that one`,
    { param: 'name', details: { name } })
}

export function profileInUse (name: string, slots: readonly string[]): SvcError {
  const whom = slots.length === 1 ? 'it' : 'them'
  return profilesError('profiles.in_use', `profile '${name}' is used by ${listed(slots)}; give ${whom} another profile first`,
    { details: { name, slots } })
}

export function profileWouldNotFit (
  name: string, problems: ReadonlyArray<{ readonly slot: string, readonly message: string }>
): SvcError {
  const reasons = problems.map(({ message }) => message).join('; ')
  return profilesError('profiles.in_use', `profile '${name}' is used by slots that it would no longer fit: ${reasons}`,
    { details: { name, slots: problems.map(({ slot }) => slot) } })
}

export function badEnvelope (reason: string, details: Readonly<Record<string, unknown>> = {}): SvcError {
  return profilesError('profiles.bad_envelope', `this profile cannot be imported: ${reason}`, { param: 'envelope', details })
}

export function importWithoutName (): SvcError {
  return profilesError('profiles.import_no_name', 'an import needs a `name` for the profile; a dry run does not', { param: 'name' })
}

function listed (slots: readonly string[]): string {
  const names = slots.slice(0, 5).map(slot => `'${slot}'`).join(', ')
  return `slot${slots.length === 1 ? '' : 's'} ${names}${slots.length > 5 ? ` and ${slots.length - 5} more` : ''}`
}
