import type { NamedProfile, SlotService } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { profileItemSchema } from './schemas.js'

export type ProfileItem = z.output<typeof profileItemSchema>

/** Which slots use which profile, also without saying so: the default of their device, or what a swap brought. */
export function profileUsers (slots: SlotService): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, string[]>()
  for (const name of slots.names()) {
    for (const profile of new Set([slots.config(name).profile, inForce(slots, name)])) {
      if (profile === null) continue
      const known = users.get(profile)
      if (known === undefined) users.set(profile, [name])
      else known.push(name)
    }
  }
  return users
}

export function profileItem (slots: SlotService, profile: NamedProfile, usedBy: readonly string[]): ProfileItem {
  const outlook = outlookOf(slots, profile)
  return {
    ...profile,
    resolved_flags: outlook?.resolvedFlags ?? profile.flags,
    runtime_family: outlook?.family ?? null,
    supported_slot_types: [...outlook?.slotTypes ?? []],
    tps: fastest(slots, usedBy),
    rtf: null,
    used_by: [...usedBy]
  }
}

/** A slot that cannot be launched uses no profile but the one in its file. */
function inForce (slots: SlotService, name: string): string | null {
  try {
    return slots.outlook(name).profile
  } catch {
    return null
  }
}

/** Flags with an open quote resolve to nothing. */
function outlookOf (slots: SlotService, profile: NamedProfile): ReturnType<SlotService['profileOutlook']> | null {
  try {
    return slots.profileOutlook(profile)
  } catch {
    return null
  }
}

/** What was measured here, by the slots that have it: nothing is promised for what has not run yet. */
function fastest (slots: SlotService, usedBy: readonly string[]): number | null {
  const speeds = usedBy.map(name => slots.metrics(name).tokensPerSec).filter(speed => speed > 0)
  return speeds.length === 0 ? null : Math.round(Math.max(...speeds) * 10) / 10
}
