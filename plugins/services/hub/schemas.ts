import { z } from 'zod'

/** Answers of the hub, as far as they are used. */
const gated = z.union([z.boolean(), z.string()]).nullish().transform(value => typeof value === 'string' || value === true)

export const repoSchema = z.looseObject({
  id: z.string(),
  sha: z.string().regex(/^[0-9a-f]{40,64}$/),
  gated,
  tags: z.array(z.string()).catch([]),
  cardData: z.looseObject({ license: z.string().nullish().catch(null) }).nullish().catch(null)
})

export const treeSchema = z.array(z.looseObject({
  type: z.string(),
  path: z.string(),
  size: z.number().int().min(0).default(0),
  oid: z.string().default(''),
  lfs: z.looseObject({ oid: z.string(), size: z.number().int().min(0) }).nullish()
}))

export const searchSchema = z.array(z.looseObject({
  id: z.string(),
  downloads: z.number().catch(0),
  likes: z.number().catch(0),
  gated,
  pipeline_tag: z.string().nullish().catch(null),
  library_name: z.string().nullish().catch(null),
  lastModified: z.string().nullish().catch(null)
}))
