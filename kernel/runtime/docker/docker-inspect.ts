import type Docker from 'dockerode'
import { z } from 'zod'
import type { EngineAddress } from '../../contract/index.js'
import { LABEL_PORT, LABEL_PORTS, type EngineInspection, type EngineRunState } from '../../contract/provider/engine-runtime.js'

const portsSchema = z.record(z.string(), z.int())

/** A container as the runtime shows it. `host`: where the container engine's published ports are reached. Pure. */
export function toInspection (data: Docker.ContainerInspectInfo, host: string): EngineInspection {
  const state = runState(data.State.Status)
  const labels = data.Config.Labels ?? {}
  const startedAt = Date.parse(data.State.StartedAt)
  return {
    id: data.Id,
    name: data.Name.replace(/^\//, ''),
    labels,
    state,
    exitCode: state === 'exited' ? data.State.ExitCode : null,
    oomKilled: data.State.OOMKilled,
    address: state === 'running' ? addressOf(data, labels, host) : null,
    label: data.Config.Image,
    startedAt: startedAt > 0 ? startedAt : null // never started is the year 1
  }
}

/** Words of Docker and of Podman. What is on its way counts as where it comes from. */
export function runState (status: string): EngineRunState {
  switch (status) {
    case 'created': case 'configured': case 'initialized': return 'created'
    case 'running': case 'paused': case 'restarting': case 'stopping': return 'running'
    default: return 'exited' // exited, stopped, removing, dead
  }
}

/** Null when a published port cannot be read back: the engine is not reachable. */
export function addressOf (
  data: Docker.ContainerInspectInfo, labels: Readonly<Record<string, string>>, host: string
): EngineAddress | null {
  const port = Number(labels[LABEL_PORT] ?? Number.NaN)
  if (data.HostConfig.NetworkMode === 'host') return Number.isInteger(port) ? { host, port, ...further(labels, own => own) } : null
  const ports: Readonly<Record<string, readonly { readonly HostIp: string, readonly HostPort: string }[] | null>> =
    data.NetworkSettings.Ports as never ?? {}
  const bindings = ports[`${port}/tcp`] ?? Object.values(ports).find(binding => (binding?.length ?? 0) > 0)
  const binding = bindings?.[0]
  if (binding === undefined) return null
  const publishedAt = (own: number): number => Number(ports[`${own}/tcp`]?.[0]?.HostPort ?? own)
  return { host: reachable(binding.HostIp, host), port: Number(binding.HostPort), ...further(labels, publishedAt) }
}

function further (labels: Readonly<Record<string, string>>, place: (own: number) => number): Pick<EngineAddress, 'ports'> {
  const ports = portsOf(labels)
  if (Object.keys(ports).length === 0) return {}
  return { ports: Object.fromEntries(Object.entries(ports).map(([name, own]) => [name, place(own)])) }
}

/** The further ports that a container was created with. Pure. */
export function portsOf (labels: Readonly<Record<string, string>>): Readonly<Record<string, number>> {
  try {
    return portsSchema.parse(JSON.parse(labels[LABEL_PORTS] ?? '{}'))
  } catch {
    // another owner's label: the engine reports none
    return {}
  }
}

/** Loopback and wildcard addresses are those of the engine's host; an address of one interface is taken as it is. */
function reachable (hostIp: string, host: string): string {
  const ofTheHost = hostIp === '' || hostIp === '0.0.0.0' || hostIp === '::' || hostIp === '::1' || hostIp.startsWith('127.')
  if (!ofTheHost) return hostIp
  return host === '127.0.0.1' && hostIp.startsWith('127.') ? hostIp : host
}
