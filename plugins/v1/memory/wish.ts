import { svcError } from 'svc-gateway/plugin'
import { z } from 'zod'

/** A chat request that opted into the memory. */
export interface MemoryWish {
  /** As the client sent it, `memory` taken out. */
  readonly body: Readonly<Record<string, unknown>>
  readonly model: string
  readonly messages: readonly unknown[]
  readonly stream: boolean
  /** A dataset; undefined is the usual one. */
  readonly bank: string | undefined
  readonly recall: boolean
  readonly retain: boolean
}

const wishSchema = z.strictObject({
  bank: z.string().min(1).max(80).optional(),
  recall: z.boolean().default(true),
  retain: z.boolean().default(true)
})

/** Null for what is no chat request that can be read: the plain way says why. Throws for a wish that is none. Pure. */
export function memoryWish (raw: Buffer): MemoryWish | null {
  const parsed = objectIn(raw)
  if (parsed === null) return null
  const { memory, ...body } = parsed
  const { model, messages, stream } = body
  if (typeof model !== 'string' || model.trim() === '' || !Array.isArray(messages)) return null
  const checked = wishSchema.safeParse(memory === true ? {} : memory)
  if (!checked.success) {
    throw svcError('validation.invalid', 'memory must be true, or an object with `bank`, a dataset, and `recall` and `retain`, true or false', { param: 'memory' })
  }
  const asked = { model: model.trim(), messages, stream: stream === true }
  return { body, bank: undefined, ...asked, ...checked.data }
}

function objectIn (raw: Buffer): Record<string, unknown> | null {
  try {
    const parsed = JSON.parse(raw.toString('utf8')) as unknown
    return isObject(parsed) ? parsed : null
  } catch {
    return null
  }
}

function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
