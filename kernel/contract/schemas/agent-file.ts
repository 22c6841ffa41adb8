import { z } from 'zod'
import { MAX_LIST_ENTRIES } from './free-table.js'
import { ENV_NAME_PATTERN } from './names.js'

/** The stem of an agent's file: what `X-svc-Agent` says, but for upper case. */
export const AGENT_NAME_PATTERN = /^[a-z0-9][a-z0-9-]{0,31}$/
/** The file of agents that give no name. */
export const ANONYMOUS_AGENT = 'anonymous'

const SERVER_PATTERN = /^[a-z0-9][a-z0-9_-]{0,63}$/
const toolNames = z.array(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, { error: 'must be the name of a tool' })).max(MAX_LIST_ENTRIES).default([])

const serverSchema = z.strictObject({
  url: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).max(2048).optional()
    .meta({ description: 'Where the server is, for the agent\'s own configuration; needed unless `builtin`' }),
  enabled: z.boolean().default(true).meta({ description: 'False: ignore this entry' }),
  builtin: z.boolean().default(false).meta({ description: 'One of the gateway\'s own servers' }),
  auth: z.strictObject({
    kind: z.enum(['none', 'bearer-from-env']).default('none'),
    env: z.string().regex(ENV_NAME_PATTERN, { error: 'must match [A-Za-z_][A-Za-z0-9_]*' }).optional().meta({ description: 'Variable that holds the token' })
  }).prefault({}),
  tools: z.strictObject({
    allow: toolNames.meta({ description: 'Tools that the agent may call; those that the gateway gates wait for an operator anyway' }),
    gated: toolNames.meta({ description: 'Tools whose calls wait for an operator' }),
    blocked: toolNames.meta({ description: 'Tools that the agent may not call, like those in none of the lists' })
  }).prefault({})
}).superRefine(({ url, builtin, auth, tools }, ctx) => {
  const problem = (path: string[], message: string): void => { ctx.addIssue({ code: 'custom', path, message }) }
  if (!builtin && url === undefined) problem(['url'], 'is required for a server that is not builtin')
  if (auth.kind === 'bearer-from-env' && auth.env === undefined) problem(['auth', 'env'], 'is required for bearer-from-env')
  const seen = new Map<string, string>()
  for (const kind of ['allow', 'gated', 'blocked'] as const) {
    for (const name of tools[kind]) {
      const before = seen.get(name)
      if (before !== undefined && before !== kind) problem(['tools', kind], `names ${name}, which is also in ${before}; a tool may be in only one of the three`)
      seen.set(name, kind)
    }
  }
})

/** `agents/<name>.toml`: what an agent may call. What stands nowhere is denied. */
export const agentFileSchema = z.strictObject({
  schema_version: z.literal(1, { error: 'must be 1' }).default(1),
  agent: z.strictObject({
    name: z.string().meta({ description: 'Same as the name of the file' }),
    display: z.string().max(200).optional(),
    workspace: z.string().max(4096).optional()
  }),
  mcp: z.strictObject({
    servers: z.record(z.string().regex(SERVER_PATTERN, { error: 'must be the id of a tool server' }), serverSchema).default({})
  }).prefault({})
})

export type AgentFile = z.output<typeof agentFileSchema>

/** What the files of agents say. */
export interface AgentRules {
  /** False where the folder could not be read whole: an agent without a known file may have one. */
  readonly isComplete: boolean
  /** By name, in lower case; null for a file that was never good, which denies everything. */
  readonly files: ReadonlyMap<string, AgentFile | null>
}
