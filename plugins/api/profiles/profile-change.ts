import { svcError, shellWords, messageOf, type ConfigDraft, type NamedProfile, type Profile, type SlotService } from 'svc-gateway/plugin'
import { profileWouldNotFit } from './profile-errors.js'
import type { ProfilePatch } from './schemas.js'

/** A profile with a patch in it. One that moves off the GPU has no GPU runtime any more, unless the patch says which. Pure. */
export function changedProfile (profile: NamedProfile, patch: ProfilePatch): Profile {
  const given = Object.fromEntries(Object.entries(patch).filter(([, value]) => value != null)) as Partial<Profile>
  const moved = given.device_class !== undefined && given.device_class !== 'gpu' && given.backend === undefined
  return { ...profile, ...given, ...(moved ? { backend: null } : {}) }
}

interface Misfit { readonly slot: string, readonly message: string }

/** Slots that name the profile and that it does not suit. */
export function profileMisfits (slots: SlotService, draft: ConfigDraft, name: string): readonly Misfit[] {
  const all = [...draft.slots.values()]
  const users = new Set(all.filter(slot => slot.profile === name).map(slot => slot.name))
  return slots.check(all, draft.profiles).filter(({ slot, rule }) => rule === 'profile' && users.has(slot))
}

/** Throws `profiles.in_use` when a change made misfits; what did not suit before does not count. */
export function guardUsers (name: string, now: readonly Misfit[], before: readonly Misfit[]): void {
  const fresh = now.filter(({ slot }) => before.every(old => old.slot !== slot))
  if (fresh.length > 0) throw profileWouldNotFit(name, fresh)
}

/** Throws `validation.invalid` for flags that no shell could split. */
export function requireWords (flags: string, path: string): void {
  try {
    shellWords(flags)
  } catch (error) {
    const message = messageOf(error)
    throw svcError('validation.invalid', `${path}: ${message}`, { param: path, details: { fields: [{ path, message }] } })
  }
}
