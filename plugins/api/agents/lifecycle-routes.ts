import { defineRoute, whileConnected, type ActivityLog, type AnyRoute, type RouteCall } from 'svc-gateway/plugin'
import { agentError, type AgentLifecycle, type AgentStatus } from '../../services/agents/ref.js'
import {
  bootstrapBodySchema, installBodySchema, logSchema, nameParamsSchema, removedSchema, reprovisionBodySchema, restartedSchema,
  statusSchema, upgradeBodySchema
} from './schemas.js'

export interface LifecycleApi {
  readonly lifecycle: AgentLifecycle
  readonly activity: ActivityLog
}

const tag = 'Agents'
const ANSWERS_AT_ONCE = 'Answers at once; GET /api/agents/{name} shows the progress. It continues after a restart of the gateway.'

export function lifecycleRoutes ({ lifecycle, activity }: LifecycleApi): AnyRoute[] {
  const audited = <T>(call: Pick<RouteCall, 'actor' | 'requestId'>, verb: string, target: string, work: () => Promise<T>): Promise<T> =>
    activity.audited({ category: 'agents', action: `agent.${verb}`, target, actor: call.actor, request_id: call.requestId }, work)
  return [
    defineRoute({
      method: 'POST',
      url: '/api/agents/install',
      tag,
      summary: 'Install an agent on the gateway\'s machine',
      description: `Only one agent is installed at a time: \`switch\` uninstalls the other one once the new one is installed. ${ANSWERS_AT_ONCE}`,
      schema: { body: installBodySchema, response: statusSchema },
      bodyError: agentError.kind('agent.name_required'),
      example: { name: 'pi', dry_run: true },
      status: 202,
      handler: async call => {
        const { name, form } = call.body
        const { switch: replaces = false, offline = false, skip_phases: skip = [], dry_run: dryRun = false } = call.body
        const work = (): Promise<AgentStatus> => lifecycle.install(name, { switch: replaces, form, offline, skip, dryRun })
        return shown(dryRun ? await work() : await audited(call, 'install', name, work))
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:name',
      tag,
      summary: 'An installed agent: its version, and the progress of its installation',
      schema: { params: nameParamsSchema, response: statusSchema },
      handler: ({ params }) => shown(lifecycle.status(params.name))
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:name/log',
      tag,
      summary: 'Output of the installation phases',
      schema: { params: nameParamsSchema, response: logSchema },
      handler: async ({ params: { name } }) => ({
        name, phases: (await lifecycle.log(name)).map(({ phase, lines }) => ({ phase, lines: [...lines] }))
      })
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:name/upgrade',
      tag,
      summary: 'Install another version of an agent',
      description: `The old version stays until the new one works. ${ANSWERS_AT_ONCE}`,
      schema: { params: nameParamsSchema, body: upgradeBodySchema, response: statusSchema },
      example: {},
      status: 202,
      handler: async call => {
        const { params: { name }, body: { to } } = call
        return shown(await audited(call, 'upgrade', name, () => lifecycle.upgrade(name, to)))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:name/reprovision',
      tag,
      summary: 'Repeat phases of an installation',
      description: ANSWERS_AT_ONCE,
      schema: { params: nameParamsSchema, body: reprovisionBodySchema, response: statusSchema },
      example: {},
      status: 202,
      handler: async call => {
        const { params: { name }, body } = call
        return shown(await audited(call, 'reprovision', name, () => lifecycle.reprovision(name, body)))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:name/bootstrap',
      tag,
      summary: 'Set up the data, wiring and server of an agent',
      description: ANSWERS_AT_ONCE,
      schema: { params: nameParamsSchema, body: bootstrapBodySchema, response: statusSchema },
      example: { dry_run: true },
      status: 202,
      handler: async call => {
        const { params: { name }, body: { offline = false, skip_phases: skip = [], dry_run: dryRun = false } } = call
        const work = (): Promise<AgentStatus> => lifecycle.bootstrap(name, { offline, skip, dryRun })
        return shown(dryRun ? await work() : await audited(call, 'bootstrap', name, work))
      }
    }),
    defineRoute({
      method: 'POST',
      url: '/api/agents/:name/restart',
      tag,
      summary: 'Rewire an agent and restart its server; answers once it works',
      schema: { params: nameParamsSchema, response: restartedSchema },
      handler: call => {
        const { params: { name } } = call
        return whileConnected(call, audited(call, 'restart', name, async () => {
          const { unit_active: isUp } = await lifecycle.restart(name)
          const detail = isUp === null ? `${name} has no server: it is rewired` : `${name} answers`
          return { agent_id: name, unit: `svc-agent@${name}.service`, status: 'restarted', detail, unit_active: isUp } as const
        }))
      }
    }),
    defineRoute({
      method: 'DELETE',
      url: '/api/agents/:name',
      tag,
      summary: 'Stop and uninstall an agent, including its data',
      description: 'Data is deleted if the gateway created its folder, and stays if the folder existed before.',
      schema: { params: nameParamsSchema, response: removedSchema },
      handler: async call => {
        const { params: { name } } = call
        const wasThere = await audited(call, 'uninstall', name, () => lifecycle.uninstall(name))
        return { name, status: wasThere ? 'uninstalled' as const : 'not_installed' as const }
      }
    })
  ]
}

export function shown ({ phases, ...status }: AgentStatus): object {
  return { ...status, phases: { ...phases } }
}
