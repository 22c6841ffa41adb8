import { bootPhases, pluginStates } from 'svc-gateway/plugin'
import { z } from 'zod'

export const pluginSchema = z.strictObject({
  name: z.string(),
  kind: z.string().nullable(),
  state: z.enum(pluginStates),
  phase: z.enum(bootPhases).meta({ description: 'Where it fell, or the last step it took' }),
  code: z.string().nullable().meta({ description: 'Error code; null when active' }),
  message: z.string().nullable(),
  ms: z.number().meta({ description: 'Milliseconds of its import, register and start' }),
  origin: z.string().meta({ description: '`builtin`, `package:<name>@<version>`, `descriptor:<file>` or `inline`' }),
  routes: z.array(z.string()),
  providers: z.array(z.string()),
  health: z.record(z.string(), z.unknown()).optional()
})

export const pluginListSchema = z.strictObject({ plugins: z.array(pluginSchema) })

export const pluginParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Plugin name' }) })
