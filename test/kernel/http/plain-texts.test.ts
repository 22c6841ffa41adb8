import fc from 'fast-check'
import t from 'tap'
import { z } from 'zod'
import { arePlainTexts } from '../../../kernel/http/openapi/plain-texts.js'

const schemas: Readonly<Record<string, z.ZodType>> = {
  'a strict one': z.strictObject({ id: z.string().min(1) }),
  'a loose one': z.looseObject({ id: z.string(), alt: z.string().optional() }),
  'one that takes out what it does not know': z.object({ id: z.string().max(3), alt: z.string().min(2).optional() }),
  'one with a bound that has a member in it': z.strictObject({ id: z.string().meta({ description: 'of it' }), kind: z.string().min(1).max(2) })
}
const text = fc.oneof({ weight: 6, arbitrary: fc.string({ maxLength: 4 }) }, fc.constantFrom('', '𐍈𐍈', undefined, 3, null))
const members = fc.tuple(
  fc.record({ id: text, alt: text, kind: text }, { requiredKeys: [] }),
  fc.option(fc.dictionary(fc.constantFrom('other', '__proto__', 'constructor'), text), { freq: 2, nil: {} })
).map(([known, others]) => Object.fromEntries([...Object.entries(known), ...Object.entries(others)]))

for (const [name, schema] of Object.entries(schemas)) {
  t.test(`what is said to fit ${name} is what the schema makes of it`, async t => {
    let fitting = 0
    fc.assert(fc.property(members, value => {
      if (!arePlainTexts(schema, value)) return
      fitting++
      const found = schema.safeParse(value)
      t.same(found.data, value)
      if (!found.success) throw new Error(`the schema refuses ${JSON.stringify(value)}`)
    }), { numRuns: 1000, seed: 7 })
    t.ok(fitting > 0, 'some fit')
  })
}

t.test('what is more than texts with bounds is left to the schema', async t => {
  const others = {
    'changed': z.strictObject({ id: z.string().trim() }),
    'coerced': z.strictObject({ id: z.coerce.string() }),
    'patterned': z.strictObject({ id: z.string().regex(/^a/) }),
    'formed': z.strictObject({ id: z.uuid() }),
    'chosen': z.strictObject({ id: z.enum(['a']) }),
    'filled': z.strictObject({ id: z.string().default('b') }),
    'made': z.strictObject({ id: z.string().transform(Number) }),
    'refined': z.strictObject({ id: z.string() }).refine(() => false),
    'refined where it is given': z.strictObject({ id: z.string().optional().refine(() => false) }),
    'refined inside': z.strictObject({ id: z.string().refine(() => false).optional() })
  }
  for (const [name, schema] of Object.entries(others)) t.notOk(arePlainTexts(schema, { id: 'a' }), name)
})
