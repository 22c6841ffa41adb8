import { messageOf, type Clock, type Logger, type RuntimeInfo } from '../contract/index.js'
import { LABEL_INSTANCE, type ContainerRuntime } from '../contract/provider/engine-runtime.js'
import { connectDocker } from './docker/docker-connect.js'
import { parseDockerHost } from './docker/docker-endpoint.js'
import { createDockerRuntime } from './docker/docker-runtime.js'
import { hostOf, isContainerEngine, isSameHost, readEngineHosts, writeEngineHosts, type EngineHost } from './engine-hosts.js'

export interface FormerEnginesOptions {
  readonly stateDir: string
  readonly instance: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly log: Logger
  readonly withinMs: number
  /** What this run uses, child processes among it, the default first. Their engines are for the slots to judge. */
  readonly hosts: readonly RuntimeInfo[]
  /** Drivers that slots ask for by name, also those that give no answer now: what they have is not ended. */
  readonly asked: ReadonlySet<string>
}

/**
 * Ends what earlier runs of this home left on engine hosts that this one does not use, and writes down what it uses: a
 * slot must not have an engine here and another one there. A host that gives no answer is asked again at the next start.
 * Never rejects.
 */
export async function endFormerEngines (options: FormerEnginesOptions): Promise<void> {
  const { stateDir, hosts: [first, ...beside], asked, log } = options
  const used = hostOf(first!)
  const others = beside.filter(isContainerEngine).map(hostOf)
  const known = await readEngineHosts(stateDir)
  // child processes are always within reach: the process driver stands beside every other, and the slots judge its engines
  const all = [...known.former, ...known.used === null ? [] : [known.used]].filter(({ driver }) => driver !== 'process')
  const unused = all.filter((host, i) =>
    ![used, ...others].some(other => isSameHost(host, other)) && all.findIndex(other => isSameHost(host, other)) === i)
  const left = unused.filter(({ driver }) => asked.has(driver))
  for (const host of unused.filter(host => !left.includes(host))) {
    try {
      await endAll(options, host)
    } catch (error) {
      const where = host.endpoint ?? 'this machine'
      log.warn({ ...host }, `engines of an earlier run may still be on ${where}: ${messageOf(error)}; the next start looks again`)
      left.push(host)
    }
  }
  await writeEngineHosts(stateDir, { used, former: [...left, ...others] }, log)
}

async function endAll (options: FormerEnginesOptions, host: EngineHost): Promise<void> {
  const { log, instance } = options
  const runtime = await open(options, host)
  try {
    for (const { id, name } of await runtime.list({ [LABEL_INSTANCE]: instance })) {
      log.warn({ engine: id, name, ...host }, 'stopping an engine of an earlier run, which used another runtime')
      await runtime.remove(id)
    }
  } finally {
    await runtime.close()
  }
}

async function open ({ env, clock, log, withinMs }: FormerEnginesOptions, host: EngineHost): Promise<ContainerRuntime> {
  const reason = 'it was used by an earlier run'
  const endpoint = parseDockerHost(host.endpoint ?? '', env)
  if (typeof endpoint === 'string') throw new Error(endpoint)
  return createDockerRuntime({ engine: await connectDocker(endpoint, { clock, withinMs }), clock, log, reason })
}
