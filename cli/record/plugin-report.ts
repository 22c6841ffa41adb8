import { z } from 'zod'
import { aboutText } from '../../kernel/contract/provider/engine-about.js'
import { asWritten } from '../client/route-words.js'
import { aboutSchema } from './slot-record.js'

const waitingSchema = z.looseObject({
  version: z.string().nullish(),
  state: z.string(),
  phase: z.string().nullish(),
  code: z.string().nullish(),
  message: z.string()
})

/** A plugin as `GET /api/plugins` tells of it, as far as it is shown. */
export const pluginReportSchema = z.looseObject({
  name: z.string(),
  kind: z.string().nullish(),
  state: z.string(),
  phase: z.string().nullish(),
  code: z.string().nullish(),
  message: z.string().nullish(),
  origin: z.string().default(''),
  version: z.string().nullish(),
  waiting: waitingSchema.nullish(),
  late_failures: z.number().default(0),
  last_late_failure: z.string().nullish(),
  providers: z.array(z.string()).default([]),
  about: z.record(z.string(), aboutSchema).default({}),
  dependents: z.looseObject({ slots: z.array(z.string()).default([]), plugins: z.array(z.string()).default([]) }).prefault({})
})
export type PluginReport = z.output<typeof pluginReportSchema>

/** Answer of `GET /api/plugins` and of a reload. */
export const pluginListSchema = z.looseObject({ plugins: z.array(pluginReportSchema) }).transform(({ plugins }) => plugins)

/** Name of the package that a plugin comes from; null for what ships with the gateway. */
export function packageOf ({ origin }: PluginReport): string | null {
  return /^package:((?:@[^@/]+\/)?[^@]+)/.exec(origin)?.[1] ?? null
}

/** A line for each engine of a plugin that says whose it is. */
export function aboutLines ({ about }: Pick<PluginReport, 'about'>): string[] {
  return Object.entries(about).map(([provider, facts]) => `Engine ${provider}: ${aboutText(facts)}`)
}

/** `plugin.import_failed at import: ...`, for one that is not active. */
export function reasonOf ({ code, phase, message }: Pick<PluginReport, 'code' | 'phase' | 'message'>): string {
  const where = [code, phase == null ? null : `at ${phase}`].filter(part => part != null).join(' ')
  return [where, message == null || message === '' ? '' : asWritten(message)].filter(part => part !== '').join(': ')
}

/** `0.1.0 active, 0.2.0 waits for a restart`: what is in force and what is not; null when nothing waits. */
export function waitingText ({ version, waiting }: Pick<PluginReport, 'version' | 'waiting'>): string | null {
  if (waiting == null) return null
  const next = waiting.version != null && waiting.version !== version ? waiting.version : 'a changed one'
  const outcome = waiting.state === 'restart' ? 'waits for a restart' : `failed: ${reasonOf(waiting)}`
  return `${version ?? 'the one before'} active, ${next} ${outcome}`
}
