import type { RouteTool } from 'svc-gateway/plugin'
import type { ProfileItem } from './profile-item.js'

const byName = { primary: 'name' } as const

function shortRow ({ name, seed, device_class, runtime_family: family, used_by, intent }: ProfileItem) {
  return { name, seed, device_class, family, used_by, intent }
}

/** What agents may do with profiles. */
export const profileTools = {
  list: {
    name: 'profile_list',
    title: 'List profiles',
    description: 'Lists the profiles, which define how an engine runs, and the slots that use them. Call it to choose the profile of a slot.',
    readOnly: true,
    short: (rows: readonly ProfileItem[]) => ({ profiles: rows.map(shortRow), count: rows.length }),
    narrow: 'ask for one with profile_status'
  },
  status: {
    name: 'profile_status',
    title: 'Look at a profile',
    description: 'Shows the image, the flags and the users of one profile. Call it before changing it.',
    readOnly: true,
    ...byName
  },
  export: {
    name: 'profile_export',
    title: 'Export a profile',
    description: 'Exports a profile as an envelope for another machine.',
    readOnly: true,
    ...byName
  },
  create: {
    name: 'profile_create',
    title: 'Create a profile',
    description: 'Creates a profile: an image and flags for an engine. An operator has to approve it.',
    gated: true,
    destructive: false,
    ...byName
  },
  update: {
    name: 'profile_update',
    title: 'Change a profile',
    description: 'Changes image or flags of a profile; slots use them from their next start. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...byName
  },
  import: {
    name: 'profile_import',
    title: 'Import a profile',
    description: 'Creates a profile from the envelope of another machine, or with dry_run shows what would happen. An operator has to approve it.',
    gated: true,
    destructive: false,
    show: ['envelope', 'name', 'dry_run']
  },
  remove: {
    name: 'profile_delete',
    title: 'Delete a profile',
    description: 'Deletes a profile that no slot uses. An operator has to approve it.',
    gated: true,
    destructive: true,
    idempotent: true,
    ...byName
  }
} satisfies Record<string, RouteTool>
