import { z } from 'zod'

export const nameParamsSchema = z.strictObject({
  name: z.string().max(64).meta({ description: 'Name of an agent of GET /api/agents', pattern: '^[a-z][a-z0-9-]{0,31}$', examples: ['pi'] })
})

const gatewaySchema = z.url({ protocol: /^https?$/ }).max(2048).meta({ description: 'The gateway as the agent reaches it', examples: ['http://127.0.0.1:8080'] })

export const wiringQuerySchema = z.strictObject({
  gateway: gatewaySchema,
  folder: z.string().min(1).max(4096).meta({ description: 'Absolute path of the folder that its files go to', examples: ['/tmp/agents/pi'] })
})

export const settingsQuerySchema = z.strictObject({ gateway: gatewaySchema })

const argsSchema = z.array(z.string())

export const wiringSchema = z.strictObject({
  name: z.string(),
  program: z.string().meta({ description: 'As on PATH' }),
  args: argsSchema.meta({ description: 'Before those of its user' }),
  env: z.record(z.string(), z.string()),
  files: z.record(z.string(), z.string()).meta({ description: 'Text by path below the folder' }),
  prepare: z.array(argsSchema).meta({ description: 'Arguments of runs of the program that come before' })
}).meta({ title: 'AgentWiring' })

export const settingsSchema = z.strictObject({
  name: z.string(),
  settings: z.array(z.strictObject({
    file: z.string().meta({ description: 'Below the home of the user' }),
    folder: z.strictObject({ variable: z.string(), file: z.string() }).nullable()
      .meta({ description: 'A variable that names the folder instead, and the file in that folder' }),
    format: z.enum(['json', 'toml', 'yaml']),
    path: z.array(z.string()).meta({ description: 'Keys that lead to the value' }),
    value: z.unknown()
  })),
  hints: z.array(z.string())
}).meta({ title: 'AgentSettings' })

const packageSchema = z.strictObject({ package: z.string(), version: z.string() }).nullable()

export const knownAgentSchema = z.strictObject({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  program: z.string(),
  licence: z.strictObject({ name: z.string(), url: z.string().nullable() }),
  npm: packageSchema,
  python: packageSchema,
  image: z.string().nullable(),
  min_context: z.int().nullable().meta({ description: 'Tokens that it asks of the model\'s window; null: any' })
}).meta({ title: 'KnownAgent' })

export const agentsSchema = z.strictObject({
  known: z.array(knownAgentSchema).meta({ description: 'All that plugins describe' })
}).meta({ title: 'Agents' })
