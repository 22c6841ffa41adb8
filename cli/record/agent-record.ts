import { z } from 'zod'

const packageSchema = z.looseObject({ package: z.string(), version: z.string() }).nullable()

export const agentStatusSchema = z.looseObject({
  name: z.string(),
  status: z.string(),
  form: z.string(),
  wanted_version: z.string().nullable(),
  version: z.string().nullable(),
  problem: z.string().nullable(),
  phases: z.record(z.string(), z.looseObject({ status: z.string(), reason: z.string().nullable() })),
  data_dir: z.string(),
  unit_active: z.boolean().nullable()
})
export type AgentStatusRecord = z.output<typeof agentStatusSchema>

export const agentListSchema = z.looseObject({
  agents: z.array(agentStatusSchema),
  known: z.array(z.looseObject({
    name: z.string(),
    title: z.string(),
    description: z.string(),
    program: z.string(),
    npm: packageSchema,
    python: packageSchema,
    image: z.string().nullable()
  }))
})
export type KnownAgent = z.output<typeof agentListSchema>['known'][number]

export const agentRunSchema = z.looseObject({
  program: z.string(),
  installed: z.string().nullable(),
  args: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  files: z.record(z.string(), z.string()),
  prepare: z.array(z.array(z.string()))
})

export const agentSettingsSchema = z.looseObject({
  settings: z.array(z.looseObject({
    file: z.string(),
    folder: z.looseObject({ variable: z.string(), file: z.string() }).nullable(),
    format: z.enum(['json', 'toml', 'yaml']),
    path: z.array(z.string()).min(1),
    value: z.unknown(),
    only_if_new: z.boolean().default(false)
  })),
  hints: z.array(z.string())
})
export type AgentSettingRecord = z.output<typeof agentSettingsSchema>['settings'][number]
