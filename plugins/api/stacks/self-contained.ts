import { profileSchema, type NamedProfile, type Profile } from 'svc-gateway/plugin'
import type { Stack } from '../../services/stack-catalog/ref.js'
import { metadataOf, modelsNamed } from './resolutions.js'
import type { StackServices } from './stack-api.js'

/** A stack with a copy of every profile and a word on every model that it refers to; what it has already stays. */
export function selfContained (stack: Stack, { config, info, library, models }: StackServices): Stack {
  const profiles = profilesNamed(stack).flatMap(name => {
    const local = config.snapshot.profiles.get(name)
    return local === undefined ? [] : [[name, profileBody(local)] as const]
  })
  const facts = modelsNamed(stack).map(id => [id, metadataOf(id, models.get(id), library.curated)] as const)
  return {
    ...stack,
    svc_version: stack.svc_version === '' ? info.version : stack.svc_version,
    profiles: { ...Object.fromEntries(profiles), ...stack.profiles },
    models: { ...Object.fromEntries(facts), ...stack.models }
  }
}

/** Pure. */
export function profilesNamed ({ slots }: Pick<Stack, 'slots'>): readonly string[] {
  return [...new Set(slots.flatMap(({ profile }) => profile ?? []))]
}

export function profileBody ({ name: _, seed: __, ...profile }: NamedProfile): Profile {
  return profileSchema.parse(profile)
}
