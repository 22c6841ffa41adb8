import { z } from 'zod'
import { upstreamAddress } from '../schemas/upstream.js'
import { surfaceNames } from '../surface-names.js'

/** A maker of models that providers.toml and POST /api/upstreams may name by `catalog_id`. */
export const upstreamTemplateSchema = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/),
  title: z.string().min(1),
  ...upstreamAddress,
  category: z.enum(['cloud', 'local']).default('cloud'),
  capabilities: z.array(z.enum(surfaceNames)).readonly()
})
export type UpstreamTemplate = Readonly<z.output<typeof upstreamTemplateSchema>>
export type UpstreamTemplateInput = Readonly<z.input<typeof upstreamTemplateSchema>>
