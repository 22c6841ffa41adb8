import { z } from 'zod'
import { boardQuerySchema, runSchema, taskId } from './schemas.js'

const seconds = z.number().meta({ description: 'Seconds' })

export const dispatchQuerySchema = z.strictObject({
  max: z.coerce.number().int().min(1).max(1000).optional().meta({ description: 'Maximum number; default is as many as may run' })
})
export const dispatchedSchema = z.strictObject({ dispatched: z.int() })
export const logQuerySchema = boardQuerySchema.extend({
  tail: z.coerce.number().int().min(1).max(100_000).optional().meta({ description: 'Number of last lines; default is everything kept, 256 KiB' })
})
export const runParamsSchema = z.strictObject({
  id: z.string().min(1).max(64).meta({ description: 'Id of the run', pattern: '^r_[0-9a-f]{16}$', examples: ['r_0123456789abcdef'] })
})
export const runAnswerSchema = runSchema.extend({ task_id: taskId }).meta({ title: 'BoardRunOfTask' })
export const workersSchema = z.array(z.strictObject({
  id: taskId, status: z.literal('running'), claimed: z.number().meta({ description: 'Epoch seconds' }), run: z.string(), profile: z.string()
}))
export const agentSchema = z.strictObject({ id: z.string(), label: z.string(), count: z.int() }).meta({ title: 'BoardAgent' })
export const agentsSchema = z.array(agentSchema)
export const agentParamsSchema = z.strictObject({
  name: z.string().min(1).max(64).meta({ description: 'Id of the agent', pattern: '^[a-z0-9][a-z0-9_-]{0,63}$', examples: ['pi'] })
})
export const labelSchema = z.strictObject({
  label: z.string().trim().min(1).max(100).nullable().meta({ description: 'Its name on the board; null is its own name' })
})
export const assigneesSchema = z.array(z.string())
export const configSchema = z.strictObject({
  tick_interval: seconds, failure_limit: z.int(), claim_ttl: seconds, max_in_flight: z.int()
})

const agent = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/).nullable()
const orchestration = {
  default_assignee: agent.meta({ description: 'Agent for ready tasks without an assignee; null leaves them unassigned' }),
  auto_promote_children: z.boolean().meta({ description: 'Tasks in `todo` become ready when all that they depend on is done' }),
  auto_decompose: z.boolean().meta({ description: 'Tasks that enter `triage` from now on are decomposed, each once' }),
  orchestrator_profile: z.string().min(1).max(256).nullable().meta({ description: 'Model that specifies and decomposes tasks; null means `svc/agent`' })
}
export const orchestrationPatchSchema = z.strictObject(orchestration).partial()
export const orchestrationSchema = z.strictObject({ ...orchestration, ...configSchema.shape })
