import { defineRoute, type AgentDescriptor, type AnyRoute } from 'svc-gateway/plugin'
import type { AgentLifecycle, Agents } from '../../services/agents/ref.js'
import { shown } from './lifecycle-routes.js'
import { agentsSchema, nameParamsSchema, settingsQuerySchema, settingsSchema, skillsSchema, wiringQuerySchema, wiringSchema } from './schemas.js'

export interface AgentApi {
  readonly agents: Agents
  readonly lifecycle: AgentLifecycle
}

const tag = 'Agents'

export function agentRoutes ({ agents, lifecycle }: AgentApi): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      url: '/api/agents',
      tag,
      summary: 'Installed agents, and those that can run on the gateway',
      schema: { response: agentsSchema },
      handler: () => {
        const installed = lifecycle.list().map(shown)
        return { agents: installed, count: installed.length, known: agents.list().map(known) }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/skills',
      tag,
      summary: 'Skills of the agents that are installed',
      description: 'From the files of the agents: skills that came with them, and those that they wrote themselves. At most 500 of each.',
      schema: { response: skillsSchema },
      handler: async () => {
        const skills = (await lifecycle.skills()).map(skill => ({ ...skill }))
        return { skills, count: skills.length }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:name/wiring',
      tag,
      summary: 'Files and environment that point one run of an agent at this gateway',
      description: 'Write the files below the folder before you start the program.',
      schema: { params: nameParamsSchema, querystring: wiringQuerySchema, response: wiringSchema },
      handler: async ({ params: { name }, query: { gateway, folder }, signal }) => {
        const { program, args, env, files, prepare } = await agents.wiring(name, { gateway: bare(gateway), folder }, signal)
        const installed = lifecycle.list().find(each => each.name === name)?.program ?? null
        return { name, program, installed, args: [...args], env, files, prepare: prepare.map(each => [...each]) }
      }
    }),
    defineRoute({
      method: 'GET',
      url: '/api/agents/:name/settings',
      tag,
      summary: 'Entries in an agent\'s own configuration that point it at this gateway',
      schema: { params: nameParamsSchema, querystring: settingsQuerySchema, response: settingsSchema },
      handler: async ({ params: { name }, query: { gateway }, signal }) => {
        const { settings, hints } = await agents.settings(name, bare(gateway), signal)
        return {
          name,
          settings: settings.map(({ folder = null, path, onlyIfNew = false, ...setting }) => {
            return { ...setting, folder, path: [...path], only_if_new: onlyIfNew }
          }),
          hints: [...hints]
        }
      }
    })
  ]
}

function bare (url: string): string {
  return url.replace(/\/+$/, '')
}

function known ({ id, name, description, program, licence, install = {}, minContext }: AgentDescriptor): object {
  const { npm, python, container } = install
  return {
    name: id,
    title: name,
    description,
    program,
    licence,
    npm: packageOf(npm),
    python: packageOf(python),
    image: container?.image ?? null,
    min_context: minContext ?? null
  }
}

function packageOf (of?: { readonly package: string, readonly version: string }): { package: string, version: string } | null {
  return of === undefined ? null : { package: of.package, version: of.version }
}
