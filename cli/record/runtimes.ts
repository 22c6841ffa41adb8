import { z } from 'zod'

/** `runtimes` of `GET /api/status`. */
export const runtimesSchema = z.array(z.looseObject({
  name: z.string(),
  default: z.boolean().default(false),
  info: z.looseObject({ version: z.string().nullish() }).nullish(),
  problem: z.string().nullish()
})).default([])
export type Runtimes = z.output<typeof runtimesSchema>

/** Names with versions, and why one is not there; null for none. */
export function runtimesText (runtimes: Runtimes): string | null {
  if (runtimes.length === 0) return null
  return runtimes.map(({ name, info, problem }) => problem == null ? `${name} ${info?.version ?? '(not needed yet)'}`.trim() : `${name} (${problem})`).join(', ')
}
