import { z } from 'zod'
import type { Colour } from '../../terminal/output.js'

export const serverSchema = z.looseObject({
  id: z.string(),
  name: z.string(),
  bundled: z.boolean(),
  state: z.string(),
  connect_url: z.string().nullish(),
  version: z.string().nullish(),
  protocol: z.string().nullish(),
  tools: z.number(),
  tool_details: z.array(z.looseObject({ name: z.string(), description: z.string(), gated: z.boolean() })).default([]),
  dropped_tools: z.array(z.looseObject({ name: z.string(), reason: z.string() })).default([]),
  resources: z.number(),
  prompts: z.number(),
  connected: z.array(z.string()).default([]),
  provider: z.string(),
  spec: z.string().nullish(),
  error: z.string().nullish()
})
export type ServerRecord = z.output<typeof serverSchema>

export const oneServerSchema = z.looseObject({ server: serverSchema })

export function stateColour (state: string): Colour {
  if (['running', 'reachable'].includes(state)) return 'green'
  return ['failed', 'unreachable'].includes(state) ? 'red' : 'dim'
}

export function toolCount ({ tools }: ServerRecord): string {
  return tools < 0 ? '?' : String(tools)
}
