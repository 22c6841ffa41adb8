import assert from 'node:assert/strict'

/** What a check of the conformance suites may claim; each throws where it does not hold. */
export interface Claims {
  ok (value: unknown, message?: string): void
  equal (found: unknown, wanted: unknown, message?: string): void
  not (found: unknown, unwanted: unknown, message?: string): void
  same (found: unknown, wanted: unknown, message?: string): void
  /** Holds what is wanted, and may hold more; a pattern matches text. */
  match (found: unknown, wanted: unknown, message?: string): void
  /** @param wanted the very error, or what `match` asks of it */
  rejects (promise: Promise<unknown>, wanted?: unknown, message?: string): Promise<void>
}

export const claims: Claims = {
  ok: (value, message) => assert.ok(value, message),
  equal: (found, wanted, message) => assert.equal(found, wanted, message),
  not: (found, unwanted, message) => assert.notEqual(found, unwanted, message),
  same: (found, wanted, message) => assert.deepEqual(found, wanted, message),
  match: (found, wanted, message) => {
    if (!holds(found, wanted)) assert.deepEqual(found, wanted, message)
  },
  rejects: async (promise, wanted, message) => {
    const [outcome] = await Promise.allSettled([promise])
    if (outcome.status === 'fulfilled') assert.fail(message ?? 'it should have been refused')
    const error: unknown = outcome.reason
    if (wanted instanceof Error) assert.equal(error, wanted, message)
    else if (wanted !== undefined && !holds(error, wanted)) throw new Error(message ?? 'it was refused with another error', { cause: error })
  }
}

function holds (found: unknown, wanted: unknown): boolean {
  if (wanted instanceof RegExp) return typeof found === 'string' && wanted.test(found)
  if (typeof wanted !== 'object' || wanted === null) return Object.is(found, wanted)
  if (typeof found !== 'object' || found === null) return false
  if (Array.isArray(wanted) && (!Array.isArray(found) || found.length !== wanted.length)) return false
  return Object.entries(wanted).every(([key, value]) => holds((found as Record<string, unknown>)[key], value))
}
