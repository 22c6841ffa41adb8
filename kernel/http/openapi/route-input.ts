import type { z } from 'zod'
import { SvcError, svcError, type AnyRoute, type BodyKind, type ErrorCode, type ErrorKind } from '../../contract/index.js'
import { checkShape, invalid } from '../../config/check/shape-check.js'
import { arePlainTexts } from './plain-texts.js'

export function bodyKindOf (route: AnyRoute): BodyKind {
  return route.bodyKind ?? (hasBody(route) ? 'json' : 'none')
}

/** Not by its value: a getter makes the schema. */
function hasBody ({ schema = {} }: AnyRoute): boolean {
  const part = Object.getOwnPropertyDescriptor(schema, 'body')
  return part?.get !== undefined || part?.value !== undefined
}

/** A part of a request as its schema has it. Throws what is wrong with it, under `code` where the route has one of its own. */
export function checkPart (schema: z.ZodType, value: unknown, what: string, code?: ErrorCode | ErrorKind): unknown {
  if (arePlainTexts(schema, value)) return value
  const checked = checkShape(schema, value, { audience: 'client' })
  if (checked.value !== null || checked.problems.length === 0) return checked.value
  const refusal = invalid(what, checked.problems)
  const { message, details, param } = refusal
  if (code === undefined) throw refusal
  const facts = { details, ...(param === null ? {} : { param }) }
  throw typeof code === 'string' ? svcError(code, message, facts) : new SvcError(code.code, code.status, message, { heals: code.heals === true, ...facts })
}
