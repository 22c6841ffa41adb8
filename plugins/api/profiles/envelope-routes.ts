import { defineRoute, type AnyRoute } from 'svc-gateway/plugin'
import { addProfile, audited, itemOf, profileOf } from './catalog-routes.js'
import { openEnvelope, sealProfile } from './envelope.js'
import type { ProfileApi } from './profile-api.js'
import { requireWords } from './profile-change.js'
import { badEnvelope, importWithoutName } from './profile-errors.js'
import { envelopeSchema, importAnswerSchema, importBodySchema, nameParamsSchema } from './schemas.js'
import { profileTools } from './tools.js'

/** Profiles on their way to and from other hosts. */
export function envelopeRoutes (api: ProfileApi): AnyRoute[] {
  const { clock, config, info } = api
  return [
    defineRoute({
      method: 'POST',
      url: '/api/profiles/:name/export',
      summary: 'A profile as a portable envelope',
      schema: { params: nameParamsSchema, response: envelopeSchema },
      tool: profileTools.export,
      handler: ({ params }) => sealProfile(profileOf(api, params.name), info.version, clock.now())
    }),
    defineRoute({
      method: 'POST',
      url: '/api/profiles/import',
      summary: 'Create a profile from an envelope, or show what would happen',
      schema: { body: importBodySchema, response: importAnswerSchema },
      example: {
        dry_run: true,
        envelope: {
          kind: 'svc.profile', schema_version: 1, svc_version: '0.1.0', exported_at: '2026-01-31T12:00:00Z', name: 'imported',
          profile: { image: 'ghcr.io/ggml-org/llama.cpp:server', device_class: 'cpu' }
        }
      },
      tool: profileTools.import,
      handler: async call => {
        const { envelope, name: wanted, dry_run: dryRun } = call.body
        const opened = openEnvelope(envelope)
        if (dryRun) {
          const name = wanted ?? opened.name ?? ''
          return {
            dry_run: true as const,
            valid: opened.checksumOk,
            checksum_ok: opened.checksumOk,
            name,
            schema_version: opened.schemaVersion,
            collides: config.snapshot.profiles.has(name)
          }
        }
        if (wanted === undefined) throw importWithoutName()
        if (!opened.checksumOk) throw badEnvelope('its checksum is wrong, so it was changed or truncated', { checksum_ok: false })
        requireWords(opened.profile.flags, 'envelope.profile.flags')
        await audited(api, call, 'import', wanted, async note => {
          await addProfile(api, wanted, opened.profile)
          note({ after: config.snapshot.profiles.get(wanted) })
        })
        return itemOf(api, wanted)
      }
    })
  ]
}
