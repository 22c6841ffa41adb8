import type { z } from 'zod'

/** What a change of the setting takes: applied at once, at the next engine start, or a gateway restart. */
export const applyClasses = ['live', 'slot-restart', 'gateway-restart'] as const
export type ApplyClass = typeof applyClasses[number]

/** A key of `[plugins.config.<plugin>]` that `/api/settings` lists with its type, bounds and description. */
export interface SettingDefinition {
  /** Dotted path below the plugin's table. */
  readonly key: string
  readonly schema: z.ZodType
  readonly description: string
  readonly apply: ApplyClass
}
