import { z } from 'zod'
import type { Device, SlotType } from '../../../kernel/contract/schemas/index.js'
import { ApiFailure } from '../../client/api-failure.js'
import type { ApiClient } from '../../client/client.js'
import { usageFailure } from '../../failure.js'
import { pluginListSchema } from '../../record/plugin-report.js'
import { offeredProviders } from './slot-options.js'

/** A name that is not built in must be the provider of an active plugin: a typo would make a slot that never starts. */
export async function requireProvider (client: ApiClient, provider: string): Promise<void> {
  if (offeredProviders.some(name => name === provider)) return
  const plugins = await client.call({ path: '/api/plugins' }, pluginListSchema).catch((error: unknown) => {
    if (error instanceof ApiFailure) return null
    throw error
  })
  const offered = plugins?.filter(({ state }) => state === 'active').flatMap(({ providers }) => providers)
  if (offered === undefined || offered.includes(provider)) return
  throw usageFailure(`no active plugin has a provider named '${provider}'`, [`There are: ${offered.join(', ')}.`])
}

const enumsSchema = z.looseObject({
  providers: z.array(z.looseObject({ name: z.string(), needs_model: z.boolean() })),
  default_providers: z.record(z.string(), z.record(z.string(), z.string().nullable())).default({})
})

/** Only the gateway knows which engine a slot gets, and which engines bring a model along. */
export async function requireModelless (
  client: ApiClient, named: string | undefined, type: SlotType, device: Device | undefined
): Promise<void> {
  const { providers, default_providers: usual } = await client.call({ path: '/api/meta/enums' }, enumsSchema)
  const provider = named ?? usual[type]?.[device ?? 'any'] ?? null
  if (providers.some(({ name, needs_model: needsModel }) => name === provider && !needsModel)) return
  throw usageFailure('required option \'-m, --model <model>\' not specified', [provider === null ? `Slots of type ${type} need a model.` : `Slots of ${provider} need a model.`])
}
