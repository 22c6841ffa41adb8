import { bootPhases, engineAboutSchema, PLUGIN_NAME_PATTERN, pluginStates } from 'svc-gateway/plugin'
import { z } from 'zod'

export const pluginSchema = z.strictObject({
  name: z.string(),
  kind: z.string().nullable(),
  state: z.enum(pluginStates),
  phase: z.enum(bootPhases).meta({ description: 'Where it failed, or the last step it took' }),
  code: z.string().nullable().meta({ description: 'Error code; null when active' }),
  message: z.string().nullable(),
  ms: z.number().meta({ description: 'Milliseconds of its import, register and start' }),
  origin: z.string().meta({ description: '`builtin`, `package:<name>@<version>`, `descriptor:<file>` or `inline`' }),
  version: z.string().nullable().meta({ description: 'Of its package' }),
  waiting: z.strictObject({
    version: z.string().nullable(),
    state: z.enum(['restart', 'failed']),
    phase: z.enum(bootPhases).nullable(),
    code: z.string().nullable(),
    message: z.string()
  }).nullable().meta({ description: 'A newer version that is not active: it waits for a restart of the gateway, or it failed' }),
  late_failures: z.int().meta({ description: 'Unhandled rejections and exceptions since it was loaded' }),
  last_late_failure: z.string().nullable(),
  routes: z.array(z.string()),
  providers: z.array(z.string()),
  tools: z.array(z.string()).meta({ description: 'As `server/name`', examples: [['admin/slot_list']] }),
  tool_problems: z.array(z.strictObject({ tool: z.string(), message: z.string() }))
    .meta({ description: 'Tools that are not offered because of their name or schema; the plugin is active without them' }),
  about: z.record(z.string(), engineAboutSchema).meta({ description: 'Licence and homepage of its engines and of their images, by provider' }),
  dependents: z.strictObject({ slots: z.array(z.string()), plugins: z.array(z.string()) })
    .meta({ description: 'Dependents: slots whose engine it provides, and plugins that use its services' }),
  health: z.record(z.string(), z.unknown()).optional()
})

export const pluginListSchema = z.strictObject({ plugins: z.array(pluginSchema) })

export const reloadSchema = z.strictObject({
  again: z.array(z.string()).optional()
    .meta({ description: 'Failed plugins or packages to try again although they have not changed' })
})

export const pluginParamsSchema = z.strictObject({ name: z.string().meta({ description: 'Plugin name', pattern: PLUGIN_NAME_PATTERN.source, examples: ['api-slots'] }) })
/** Of a plugin that need not be there: the name alone says whether it ever can be. */
export const pluginNameParamsSchema = z.strictObject({ name: z.string().regex(PLUGIN_NAME_PATTERN).meta({ description: 'Plugin name', examples: ['api-slots'] }) })
