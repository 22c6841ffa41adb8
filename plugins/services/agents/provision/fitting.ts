import { mkdir } from 'node:fs/promises'
import type { AgentDescriptor, SvcError } from 'svc-gateway/plugin'
import { agentError } from '../errors.js'
import type { PhaseDeps } from './phases.js'
import { installForms, type InstallForm } from '../ref.js'

export type FittingDeps = Pick<PhaseDeps, 'known' | 'environments' | 'daemons' | 'root' | 'signal'>

/**
 * The form that an agent would come in, which is the first that works here. Throws `agent.cannot_install` and
 * `agent.window_too_small` where it could not work in the end: nothing has been done by then.
 * @param offline nothing is brought, so whether it could be does not matter
 */
export async function fittingForm (
  { known, environments, daemons, root, signal }: FittingDeps,
  agent: AgentDescriptor, wanted: InstallForm | undefined, offline: boolean
): Promise<InstallForm> {
  const { id, name, minContext = 0, install = {} } = agent
  const forms = installForms.filter(form => install[form] !== undefined && (wanted === undefined || wanted === form))
  if (forms.length === 0) {
    throw cannotInstall(agent, Object.keys(install).length > 0 ? `${name} is not available as ${wanted!}`
      : `${name} is not installed by the gateway: install it as its makers describe, then run \`svc agent run ${id}\``)
  }
  const window = await known.window(signal)
  if (window !== null && window < minContext) {
    throw agentError('agent.window_too_small', `${name} needs a context window of ${minContext} tokens, and that of ${known.model} has ${window}: ` +
      'give its slot a larger one (`svc slot edit <slot> --ctx-size`)', { details: { agent: id, needs: minContext, has: window } })
  }
  if (offline) return forms[0]!
  await mkdir(root(), { recursive: true, mode: 0o700 })
  let why = ''
  for (const form of forms) {
    if (form === 'container') {
      if (daemons.hasContainers) return form
      why = 'no container engine answers here'
      continue
    }
    try {
      await environments.check({ [form]: install[form] }, root())
      return form
    } catch (error) {
      if (!(error instanceof Error)) throw error
      why ||= error.message
    }
  }
  throw cannotInstall(agent, why)
}

function cannotInstall ({ id }: AgentDescriptor, why: string): SvcError {
  return agentError('agent.cannot_install', why, { details: { agent: id } })
}

/** For an order that may bring nothing. */
export function nothingHere (agent: AgentDescriptor): SvcError {
  return cannotInstall(agent, `${agent.name} is not here, and nothing may be downloaded`)
}
