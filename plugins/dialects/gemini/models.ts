import type { ModelObject } from 'svc-gateway/plugin'
import type { z } from 'zod'
import { malformed } from '../../v1/over-chat/ref.js'
import type { modelListSchema, modelSchema } from './schemas.js'

type ListedModel = z.output<typeof modelSchema>

/** A row of `GET /v1/models` as Google lists models. Pure. */
export function modelOf (row: ModelObject): ListedModel {
  const { id, display_name: displayName, context_length: context, capabilities, _svc: svc } = row
  const embeds = Array.isArray(capabilities) && capabilities.includes('embed')
  const target = (svc as { readonly resolves_to?: unknown } | undefined)?.resolves_to
  return {
    name: `models/${id}`,
    version: '001',
    displayName: typeof displayName === 'string' ? displayName : id,
    description: typeof target === 'string' ? `leads to ${target}` : '',
    ...typeof context === 'number' && context > 0 ? { inputTokenLimit: context, outputTokenLimit: context } : {},
    supportedGenerationMethods: embeds ? ['embedContent', 'batchEmbedContents'] : ['generateContent', 'countTokens']
  }
}

/** One page of a list; the token of the next one is where it begins. Throws `validation.invalid`. Pure. */
export function pageOf (
  models: readonly ListedModel[], size: number, token: string | undefined
): z.output<typeof modelListSchema> {
  const from = token === undefined || token === '' ? 0 : Number(token)
  if (!Number.isSafeInteger(from) || from < 0) throw malformed('pageToken', 'must be the nextPageToken of an earlier answer')
  const next = from + size
  return { models: models.slice(from, next), ...next < models.length ? { nextPageToken: String(next) } : {} }
}
