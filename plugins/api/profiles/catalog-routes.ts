import { defineRoute, type AnyRoute, type NamedProfile, type Profile, type RouteCall } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { ProfileApi } from './profile-api.js'
import { profileExists, profileInUse, profileNotFound } from './profile-errors.js'
import { profileItem, profileUsers, type ProfileItem } from './profile-item.js'
import { changedProfile, guardUsers, profileMisfits, requireWords } from './profile-change.js'
import { createBodySchema, nameParamsSchema, ownNameParamsSchema, patchBodySchema, profileItemSchema } from './schemas.js'
import { profileTools } from './tools.js'

/** Profiles as a catalogue. Seeds can be read and cloned, not changed. */
export function catalogRoutes (api: ProfileApi): AnyRoute[] {
  const { config, slots } = api
  return [
    defineRoute({
      method: 'GET',
      url: '/api/profiles',
      summary: 'List profiles: built-in ones first',
      schema: { response: z.array(profileItemSchema) },
      tool: profileTools.list,
      handler: () => {
        const users = profileUsers(slots)
        return [...config.snapshot.profiles.values()].map(profile => profileItem(slots, profile, users.get(profile.name) ?? []))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/profiles/:name',
      summary: 'One profile',
      schema: { params: nameParamsSchema, response: profileItemSchema },
      tool: profileTools.status,
      handler: ({ params }) => itemOf(api, params.name)
    }),
    defineRoute({
      method: 'POST',
      url: '/api/profiles',
      summary: 'Create a profile',
      schema: { body: createBodySchema, response: profileItemSchema },
      example: { name: 'my-cpu', image: 'ghcr.io/ggml-org/llama.cpp:server', flags: '--threads 8', device_class: 'cpu' },
      status: 201,
      tool: profileTools.create,
      handler: async call => {
        const { name, ...profile } = call.body
        requireWords(profile.flags, 'flags')
        await audited(api, call, 'create', name, async note => {
          await addProfile(api, name, profile)
          note({ after: config.snapshot.profiles.get(name) })
        })
        return itemOf(api, name)
      }
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/profiles/:name',
      summary: 'Change a profile',
      description: 'Omitted and null fields stay. Running slots keep the old settings and are marked as drifted.',
      schema: { params: ownNameParamsSchema, body: patchBodySchema, response: profileItemSchema },
      example: { flags: '--threads 6' },
      tool: profileTools.update,
      handler: async call => {
        const { name } = call.params
        const before = profileOf(api, name)
        requireWords(call.body.flags ?? '', 'flags')
        await audited(api, call, 'edit', name, async note => {
          note({ before })
          await config.change(async draft => {
            const profile = draft.profiles.get(name)
            if (profile === undefined) throw profileNotFound(name)
            const misfits = profileMisfits(slots, draft, name)
            await draft.putProfile(name, changedProfile(profile, call.body))
            guardUsers(name, profileMisfits(slots, draft, name), misfits)
          })
          note({ after: config.snapshot.profiles.get(name) })
        })
        return itemOf(api, name)
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/profiles/:name',
      summary: 'Delete a profile that no slot uses',
      schema: { params: ownNameParamsSchema },
      tool: profileTools.remove,
      handler: async call => {
        const { name } = call.params
        const before = profileOf(api, name)
        await audited(api, call, 'delete', name, async note => {
          note({ before })
          await config.change(async draft => {
            await draft.putProfile(name, null)
            const users = new Set([
              ...[...draft.slots.values()].filter(slot => slot.profile === name).map(slot => slot.name),
              ...profileUsers(slots).get(name) ?? []
            ])
            if (users.size > 0) throw profileInUse(name, [...users].sort())
          })
        })
      }
    })
  ]
}

/** Throws `profiles.exists`. */
export async function addProfile ({ config }: ProfileApi, name: string, profile: Profile): Promise<void> {
  await config.change(async draft => {
    if (draft.profiles.has(name)) throw profileExists(name)
    await draft.putProfile(name, profile)
  })
}

export function itemOf (api: ProfileApi, name: string): ProfileItem {
  return profileItem(api.slots, profileOf(api, name), profileUsers(api.slots).get(name) ?? [])
}

export function profileOf ({ config }: ProfileApi, name: string): NamedProfile {
  const profile = config.snapshot.profiles.get(name)
  if (profile === undefined) throw profileNotFound(name)
  return profile
}

type Audited = Parameters<ProfileApi['activity']['audited']>[1]
type Caller = Pick<RouteCall, 'actor' | 'requestId'>

export function audited (
  { activity }: ProfileApi, caller: Caller, action: string, name: string, work: Audited
): Promise<unknown> {
  const row = { category: 'profile', action: `profile.${action}`, target: name, actor: caller.actor, request_id: caller.requestId }
  return activity.audited(row, work)
}
