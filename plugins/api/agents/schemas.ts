import { z } from 'zod'
import { agentPhases, agentStates, installForms, phaseStates } from '../../services/agents/ref.js'

export const nameParamsSchema = z.strictObject({
  name: z.string().max(64).meta({ description: 'Name of an agent of GET /api/agents', pattern: '^[a-z][a-z0-9-]{0,31}$', examples: ['pi'] })
})

const gatewaySchema = z.url({ protocol: /^https?$/ }).max(2048).meta({ description: 'Address at which the agent reaches the gateway', examples: ['http://127.0.0.1:8080'] })

export const wiringQuerySchema = z.strictObject({
  gateway: gatewaySchema,
  folder: z.string().min(1).max(4096).meta({ description: 'Absolute path of the folder for its files', examples: ['/tmp/agents/pi'] })
})

export const settingsQuerySchema = z.strictObject({ gateway: gatewaySchema })

const argsSchema = z.array(z.string())

export const wiringSchema = z.strictObject({
  name: z.string(),
  program: z.string().meta({ description: 'As on PATH' }),
  installed: z.string().nullable().meta({ description: 'Path of the one that the gateway installed; null if there is none' }),
  args: argsSchema.meta({ description: 'Placed before those of its user' }),
  env: z.record(z.string(), z.string()),
  files: z.record(z.string(), z.string()).meta({ description: 'Text by path below the folder' }),
  prepare: z.array(argsSchema).meta({ description: 'Arguments of runs of the program to do first' })
}).meta({ title: 'AgentWiring' })

export const settingsSchema = z.strictObject({
  name: z.string(),
  settings: z.array(z.strictObject({
    file: z.string().meta({ description: 'Below the home of the user' }),
    folder: z.strictObject({ variable: z.string(), file: z.string() }).nullable()
      .meta({ description: 'A variable that overrides the folder, and the file in that folder' }),
    format: z.enum(['json', 'toml', 'yaml']),
    path: z.array(z.string()).meta({ description: 'Keys that lead to the value' }),
    value: z.unknown(),
    only_if_new: z.boolean().meta({ description: 'Not written to an existing file' })
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
  min_context: z.int().nullable().meta({ description: 'Context window in tokens that it needs from the model; null: any' })
}).meta({ title: 'KnownAgent' })

const phaseStatusSchema = z.strictObject({
  status: z.enum(phaseStates),
  at: z.string().meta({ description: 'ISO 8601 UTC' }),
  reason: z.string().nullable().meta({ description: 'Why it failed' }),
  details: z.record(z.string(), z.unknown())
}).meta({ title: 'AgentPhase' })

export const statusSchema = z.strictObject({
  name: z.string(),
  status: z.enum(agentStates).meta({ description: '`planned`: nothing was done' }),
  job: z.string().nullable(),
  form: z.enum(installForms),
  wanted_version: z.string().nullable().meta({ description: 'The tag, for a container; null if its plugin is not there' }),
  version: z.string().nullable().meta({ description: 'Version that is really installed' }),
  installed_at: z.string().nullable().meta({ description: 'ISO 8601 UTC' }),
  completed_at: z.string().nullable().meta({ description: 'ISO 8601 UTC; null while work on it is under way' }),
  problem: z.string().nullable(),
  phases: z.partialRecord(z.enum(agentPhases), phaseStatusSchema),
  data_dir: z.string(),
  config_path: z.string().meta({ description: 'The file with its permissions; null or missing: those of every agent' }),
  program: z.string().nullable().meta({ description: 'null for a container, and before it is installed' }),
  unit_active: z.boolean().nullable().meta({ description: 'Whether its server is running; null for an agent without one' })
}).meta({ title: 'AgentStatus' })

export const agentsSchema = z.strictObject({
  agents: z.array(statusSchema).meta({ description: 'Installed by the gateway' }),
  count: z.int(),
  known: z.array(knownAgentSchema).meta({ description: 'All that plugins describe' })
}).meta({ title: 'Agents' })

export const skillsSchema = z.strictObject({
  skills: z.array(z.strictObject({
    agent: z.string(),
    name: z.string(),
    description: z.string().meta({ description: 'May be empty' }),
    path: z.string().meta({ description: 'Of its file, on the gateway\'s machine' })
  }).meta({ title: 'AgentSkill' })),
  count: z.int()
}).meta({ title: 'AgentSkills' })

const dryRunSchema = z.boolean().optional().meta({ description: 'Only report what would be done' })
const offlineSchema = z.boolean().optional().meta({ description: 'Download nothing: use what is already present' })
const skipSchema = z.array(z.enum(agentPhases)).max(agentPhases.length).optional().meta({ description: 'Phases to leave out' })

export const installBodySchema = z.strictObject({
  name: z.string().min(1).max(64),
  switch: z.boolean().optional().meta({ description: 'Uninstall the agent that is installed now' }),
  form: z.enum(installForms).optional().meta({ description: 'Default: the first that works here' }),
  offline: offlineSchema,
  skip_phases: skipSchema,
  dry_run: dryRunSchema
}).meta({ title: 'AgentInstallOrder' })

export const upgradeBodySchema = z.strictObject({
  to: z.string().regex(/^\d[\w.+-]{0,63}$/).optional().meta({ description: 'Default: the version that this release of the gateway is tested with' })
}).meta({ title: 'AgentUpgradeOrder' })

export const reprovisionBodySchema = z.strictObject({
  phase: z.enum(agentPhases).exclude(['replace']).optional().meta({ description: 'Only this one' }),
  repair: z.boolean().optional().meta({ description: 'Reinstall its packages' })
}).meta({ title: 'AgentReprovisionOrder' })

export const bootstrapBodySchema = z.strictObject({
  offline: offlineSchema, skip_phases: skipSchema, dry_run: dryRunSchema
}).meta({ title: 'AgentBootstrapOrder' })

export const logSchema = z.strictObject({
  name: z.string(),
  phases: z.array(z.strictObject({ phase: z.enum(agentPhases), lines: z.array(z.string()) }))
})

export const restartedSchema = z.strictObject({
  agent_id: z.string(),
  unit: z.string().meta({ description: 'Its unit name for `GET /api/logs`, which has its output; the gateway runs it itself' }),
  status: z.enum(['restarted']),
  detail: z.string(),
  unit_active: z.boolean().nullable().meta({ description: 'Whether its server is running; null for an agent without one' })
}).meta({ title: 'AgentRestart' })

export const removedSchema = z.strictObject({ name: z.string(), status: z.enum(['uninstalled', 'not_installed']) })
