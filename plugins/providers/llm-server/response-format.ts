import type { BodyEdits, JsonBody } from 'svc-gateway/plugin'
import { z } from 'zod'

const textSchema = z.looseObject({
  format: z.discriminatedUnion('type', [
    z.looseObject({ type: z.literal('json_object') }),
    z.looseObject({ type: z.literal('json_schema') })
  ])
})

/**
 * llama-server passes over `text.format` of the Responses API, so that a schema shaped nothing; it takes the same thing
 * under chat's name, also there. Pure.
 */
export function responseFormat (body: JsonBody): BodyEdits | null {
  if (!body.has('text')) return null
  const format = textSchema.safeParse(body.value('text')).data?.format
  if (format === undefined) return null
  const { type, ...json } = format
  return { add: { response_format: type === 'json_schema' ? { type, json_schema: json } : { type } } }
}
