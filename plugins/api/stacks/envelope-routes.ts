import { defineRoute, type AnyRoute, type ConfigDraft, type NamedProfile } from 'svc-gateway/plugin'
import { stackCatalog, type Stack } from '../../services/stack-catalog/ref.js'
import { openEnvelope, sealStack } from './envelope.js'
import { byStatus, resolutionsOf } from './resolutions.js'
import { envelopeSchema, importAnswerSchema, importBodySchema, slugParamsSchema } from './schemas.js'
import { selfContained } from './self-contained.js'
import type { StackServices } from './stack-api.js'
import { badEnvelope, importWithoutSlug } from './stack-errors.js'
import { itemOf, stackOf } from './stack-item.js'
import { addStack, audited, bodyOf, requireFlags, requireSlug, tell } from './stack-store.js'
import { stackTools } from './tools.js'

interface ProfileFate { readonly name: string, readonly status: 'created' | 'local' }

/** Stacks on their way to and from other hosts. */
export function envelopeRoutes (services: StackServices): AnyRoute[] {
  const { clock, config, info, models } = services
  return [
    defineRoute({
      method: 'POST',
      url: '/api/stacks/:slug/export',
      summary: 'A stack as a portable envelope',
      schema: { params: slugParamsSchema, response: envelopeSchema },
      tool: stackTools.export,
      handler: ({ params }) => sealStack(selfContained(bodyOf(stackOf(services, params.slug)), services), {
        release: info.version, now: clock.now(), models: models.list(), clean: text => config.withoutSecrets(text)
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/stacks/import',
      summary: 'Create a stack from an envelope, or show what would happen',
      description: 'Profiles in the envelope are created if this host has none of that name.',
      schema: { body: importBodySchema, response: importAnswerSchema },
      example: {
        dry_run: true,
        envelope: {
          kind: 'svc.stack', schema_version: 1, svc_version: '0.1.0', exported_at: '2026-01-31T12:00:00Z',
          stack: { name: 'One slot', slots: [{ slot: 'agent' }] }
        }
      },
      tool: stackTools.import,
      handler: async call => {
        const { envelope, slug, dry_run: dryRun } = call.body
        if (slug !== undefined) requireSlug(slug)
        const { stack, schemaVersion, checksumOk } = openEnvelope(envelope)
        const resolutions = resolutionsOf(stack, services)
        if (dryRun) {
          const { profiles } = config.snapshot
          return {
            dry_run: true as const,
            valid: checksumOk,
            checksum_ok: checksumOk,
            name: stack.name,
            schema_version: schemaVersion,
            resolutions: [...resolutions],
            ...byStatus(resolutions),
            profiles: profileFates(stack, profiles),
            collides: slug !== undefined && stackCatalog.of(config.snapshot).has(slug)
          }
        }
        if (slug === undefined) throw importWithoutSlug()
        if (!checksumOk) throw badEnvelope('its checksum is wrong, so it was changed or truncated', { checksum_ok: false })
        requireFlags(stack)
        const profiles = await audited(services, call, 'import', slug, async note => {
          const fates = await config.change(draft => importStack(services, draft, slug, selfContained(stack, services)))
          note({ after: bodyOf(stackOf(services, slug)) })
          return fates
        })
        tell(services, 'created', slug)
        return { dry_run: false as const, stack: await itemOf(services, slug), ...byStatus(resolutions), profiles }
      }
    })
  ]
}

/** The stack and the profiles that only it has, as one change. */
async function importStack (services: StackServices, draft: ConfigDraft, slug: string, stack: Stack): Promise<ProfileFate[]> {
  const fates = profileFates(stack, draft.profiles)
  await addStack(services, draft, slug, stack)
  for (const { name, status } of fates) if (status === 'created') await draft.putProfile(name, stack.profiles[name]!)
  return fates
}

function profileFates ({ profiles }: Stack, local: ReadonlyMap<string, NamedProfile>): ProfileFate[] {
  return Object.keys(profiles).map(name => ({ name, status: local.has(name) ? 'local' : 'created' }))
}
