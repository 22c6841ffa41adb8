import { z } from 'zod'
import { authStyles, upstreamSchema } from '../schemas/upstream.js'
import { surfaceNames } from '../surface-names.js'

const { url, auth_header: header, auth_value_env: variable } = upstreamSchema.shape

/** A maker of models that providers.toml and POST /api/upstreams may name by `catalog_id`. */
export const upstreamTemplateSchema = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/),
  title: z.string().min(1),
  url,
  auth_style: z.enum(authStyles).default('bearer'),
  auth_header: header,
  /** Variable that holds the key by default; empty where none is needed. */
  auth_value_env: variable,
  category: z.enum(['cloud', 'local']).default('cloud'),
  capabilities: z.array(z.enum(surfaceNames)).readonly()
})
export type UpstreamTemplate = Readonly<z.output<typeof upstreamTemplateSchema>>
export type UpstreamTemplateInput = Readonly<z.input<typeof upstreamTemplateSchema>>
