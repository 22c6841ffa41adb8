import { z } from 'zod'
import { defaultProvider, specProviders } from '../../../kernel/contract/schemas/index.js'
import { ApiFailure } from '../../api-failure.js'
import type { ApiClient } from '../../client.js'
import { usageFailure } from '../../failure.js'
import { pluginListSchema } from '../../plugin-report.js'

/** A name that is not built in must be the provider of an active plugin: a typo would make a slot that never starts. */
export async function requireProvider (client: ApiClient, provider: string): Promise<void> {
  if (specProviders.some(name => name === provider)) return
  const plugins = await client.call({ path: '/api/plugins' }, pluginListSchema).catch((error: unknown) => {
    if (error instanceof ApiFailure) return null
    throw error
  })
  const offered = plugins?.filter(({ state }) => state === 'active').flatMap(({ providers }) => providers)
  if (offered === undefined || offered.includes(provider)) return
  throw usageFailure(`no active plugin has a provider named '${provider}'`, [`There are: ${offered.join(', ')}.`])
}

const enumsSchema = z.looseObject({ providers: z.array(z.looseObject({ name: z.string(), needs_model: z.boolean() })) })

/** Only the gateway knows which engines bring a model along; the default one never does. */
export async function requireModelless (client: ApiClient, provider: string): Promise<void> {
  const { providers } = provider === defaultProvider ? { providers: [] } : await client.call({ path: '/api/meta/enums' }, enumsSchema)
  if (providers.some(({ name, needs_model: needsModel }) => name === provider && !needsModel)) return
  throw usageFailure('required option \'-m, --model <model>\' not specified', [`Slots of ${provider} need a model.`])
}
