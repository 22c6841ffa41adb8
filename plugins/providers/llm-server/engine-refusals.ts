import { svcError, type SvcError } from 'svc-gateway/plugin'
import { z } from 'zod'

const refusalSchema = z.looseObject({ error: z.looseObject({ message: z.string() }) })

/** What llama-server answers with 500 although the request is at fault: it would be at any other time, too. */
const mistakes = [
  /^'?\w+'? is required/,
  /\b(image|audio|video) input is not supported/,
  /\bis too large to process\b/,
  /^Failed to (parse|load|decode) /i
]

/** A request that llama-server cannot serve is the client's to change: SDKs repeat a 500 and give a 400 back. Pure. */
export function mistakenFailure (status: number, body: string): SvcError | null {
  if (status !== 500) return null
  const message = messageIn(body)
  return message !== null && mistakes.some(mistake => mistake.test(message)) ? svcError('validation.invalid', message) : null
}

function messageIn (body: string): string | null {
  try {
    return refusalSchema.safeParse(JSON.parse(body)).data?.error.message ?? null
  } catch {
    // not JSON: passes as it came
    return null
  }
}
