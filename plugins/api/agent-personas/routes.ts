import { defineRoute, type ActivityLog, type AnyRoute, type ToolCatalogue } from 'svc-gateway/plugin'
import { personaError, personaPatchSchema, tones, type AgentPersonas, type Persona } from '../../services/agent-personas/ref.js'
import { toolCalls } from './tool-calls.js'
import {
  activateBodySchema, activatedSchema, activityQuerySchema, activitySchema, agentParamsSchema, enumsSchema, personaListSchema,
  personaParamsSchema, personaSchema
} from './schemas.js'

export interface PersonaServices {
  readonly activity: ActivityLog
  readonly personas: AgentPersonas
  readonly tools: ToolCatalogue
}

type Call = Readonly<Record<'actor' | 'requestId', string>> & { readonly params: { readonly agent: string, readonly pid: string } }
const tag = 'Agents'

export function personaRoutes ({ activity, personas, tools }: PersonaServices): AnyRoute[] {
  const audited = <T>(verb: string, { actor, requestId, params: { agent, pid } }: Call, work: () => Promise<T>): Promise<T> =>
    activity.audited({ category: 'agent', action: `agent.persona_${verb}`, target: `${agent}/${pid}`, actor, request_id: requestId }, work)
  const whole = (agent: string, persona: Persona): object =>
    ({ ...persona, active: personas.active(agent) === persona.id, raw_toml: personas.toml(agent, persona.id) })
  return [
    defineRoute({
      method: 'GET',
      url: '/api/agents/persona-enums',
      tag,
      summary: 'Allowed values of the fields of a persona',
      schema: { response: enumsSchema },
      handler: () => ({ tones, tools: tools.all().map(({ server, name }) => `${server}/${name}`).toSorted() })
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:agent/activity',
      tag,
      summary: 'Calls of tools by an agent, newest first',
      description: 'From the newest 10,000 rows of the audit trail; `/api/activity?actor=mcp:<agent>` lists everything that it did.',
      schema: { params: agentParamsSchema, querystring: activityQuerySchema, response: activitySchema },
      handler: ({ params: { agent }, query: { limit } }) => {
        personas.requireAgent(agent)
        return { agent, ...toolCalls(activity, tools, agent, limit) }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:agent/personas',
      tag,
      summary: 'Personas of an agent, built-in ones first',
      schema: { params: agentParamsSchema, response: personaListSchema },
      handler: ({ params: { agent } }) => {
        const active = personas.active(agent)
        return {
          agent_id: agent,
          active,
          personas: personas.list(agent)
            .map(({ id, display_name, summary }) => ({ id, display_name, summary, active: id === active }))
        }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:agent/personas/:pid',
      tag,
      summary: 'One persona, with its text',
      schema: { params: personaParamsSchema, response: personaSchema },
      handler: ({ params: { agent, pid } }) => whole(agent, personas.get(agent, pid))
    }),
    defineRoute({
      method: 'PUT',
      url: '/api/agents/:agent/personas/:pid',
      tag,
      summary: 'Change or create a persona',
      description: 'Omitted fields stay. Written to personas.toml, whose comments stay. A running agent picks it up on `activate`.',
      schema: { params: personaParamsSchema, body: personaPatchSchema, response: personaSchema },
      bodyError: personaError.kind('persona.invalid'),
      unreadableBody: personaError.kind('persona.malformed'),
      example: { display_name: 'Reviewer', system_prompt: 'You review changes.', approval: { default_policy: 'ask' } },
      handler: call => audited('write', call, async () => {
        const { params: { agent, pid }, body } = call
        return whole(agent, await personas.write(agent, pid, body))
      })
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/agents/:agent/personas/:pid',
      tag,
      summary: 'Remove a persona; a built-in one is reset',
      schema: { params: personaParamsSchema },
      handler: call => audited('remove', call, () => personas.remove(call.params.agent, call.params.pid))
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:agent/personas/:pid/activate',
      tag,
      summary: 'Make a persona the active one',
      description: 'An agent that the gateway runs is reloaded within five seconds; `reload_url` does the same for one that it does not run. A failed reload is reported, but the persona is active. Only this machine and `[plugins.config.agent-personas] reload_hosts` may be contacted.',
      schema: { params: personaParamsSchema, body: activateBodySchema, response: activatedSchema },
      example: {},
      handler: call => audited('activate', call, async () => {
        const { params: { agent, pid }, body: { reload, reload_url: url }, signal } = call
        personas.get(agent, pid)
        if (reload && url !== undefined) personas.requireReloadable(url)
        const previous = await personas.activate(agent, pid)
        const untold = { reloaded: false, reload_error: null }
        const told = reload ? await personas.reload(agent, pid, url, signal) : untold
        return { agent_id: agent, active: pid, previous, ...told }
      })
    })
  ]
}
