import { svcError, type SvcError } from 'svc-gateway/plugin'
import { z } from 'zod'

const failureSchema = z.looseObject({
  error: z.union([z.string(), z.looseObject({ message: z.string() }).transform(({ message }) => message)])
})

/** The engine's JSON reader, whose complaints are about what the client sent. */
const BAD_BODY = '[json.exception.'

/**
 * What an answer with status 200 tells of a failure: the engine knows no other status for most of them. Null for a real
 * answer. Pure.
 */
export function engineFailure (json: unknown): SvcError | null {
  const { data } = failureSchema.safeParse(json)
  if (data === undefined) return null
  return data.error.startsWith(BAD_BODY)
    ? svcError('validation.invalid', `the engine cannot read the request: ${data.error}`)
    : svcError('dispatch.upstream_failed', `the engine failed: ${data.error}`)
}

/** The same for an answer that is not read yet. Other statuses are the engine's own word. Pure. */
export function refusal (status: number, body: string): SvcError | null {
  return status === 200 && body.startsWith('{"error"') ? engineFailure(jsonOf(body)) : null
}

function jsonOf (body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    // half an answer passes as it came
    return null
  }
}
