import { z } from 'zod'
import { MAX_TEMPLATE_BYTES } from './template-files.js'

/** `auto` stands for the template of the model itself. */
const ID = '^(?!auto$)[a-z0-9][a-z0-9_-]{0,40}$'

const lintShape = {
  valid: z.boolean(),
  error: z.string().nullable().meta({ description: 'What is wrong, or null' }),
  line: z.int().nullable().meta({ description: 'Line of the tag at fault, from 1; null if unknown' }),
  warnings: z.array(z.string()).meta({ description: 'Features that it does not support, such as tools' })
}

export const templateEntrySchema = z.strictObject({
  id: z.string(),
  label: z.string(),
  bundled: z.boolean(),
  ...lintShape
})
export const templateSchema = templateEntrySchema.extend({ content: z.string() })
export const lintSchema = z.strictObject(lintShape)

/** Any text: an id that no template can have is a template that does not exist. */
export const idParamsSchema = z.strictObject({ id: z.string().meta({ description: 'Template id', pattern: ID, examples: ['chatml'] }) })

const content = z.string().max(MAX_TEMPLATE_BYTES).meta({ description: 'Jinja' })

/** The id is checked with a code of its own. */
export const putBodySchema = z.strictObject({ id: z.string().meta({ description: 'Lowercase letters, digits, `_` and `-`, at most 41', pattern: ID }), content })
export const lintBodySchema = z.strictObject({ content })
