import { access, constants, readFile, stat } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { z } from 'zod'
import { svcConfigSchema, type Clock, type HardwareInfo, type Paths, type SvcConfig } from '../../../kernel/contract/index.js'
import { loadParts } from '../../../kernel/config/load/load-parts.js'
import type { ConfigParts } from '../../../kernel/config/parts/config-parts.js'
import { layManifest } from '../../../kernel/config/schema/json-files.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { createProbeFiles } from '../../../kernel/hardware/probe-files.js'
import { storeOf } from '../../../kernel/models/store-folder.js'
import { deviceNodes } from '../../../kernel/runtime/device/device-access.js'
import type { DockerEngine } from '../../../kernel/runtime/docker/docker-connect.js'
import { imagePresent } from '../../../kernel/runtime/docker/docker-pull.js'
import { resolveImage } from '../../../kernel/runtime/image/image-manifest.js'
import { runtimeCandidates } from '../../../kernel/runtime/runtime-candidates.js'
import { tryCandidate } from '../../../kernel/runtime/select-runtime.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import type { Cli } from '../../cli.js'
import type { KnownPlugin } from '../../../kernel/host/record/plugin-findings.js'
import type { ApiClient } from '../../client/client.js'
import { findsProcessEngine } from '../engines/engines.js'
import { pluginListSchema, reasonOf, waitingText } from '../../record/plugin-report.js'
import { homeProviders } from '../home-providers.js'
import { gatewayAt } from '../home/running-gateway.js'
import { checkHome } from '../config/check-home.js'
import { judgeFiles } from '../config/validate.js'
import { leastNode } from '../../version.js'
import type { DeviceNode, DoctorFacts, PortFacts } from './facts.js'
import { runtimesSchema } from '../../record/runtimes.js'
import { holdersOf } from './listeners.js'
import { clusterFacts } from '../cluster/cluster.js'
import { svcSchema } from '../svc-schema.js'

export interface GatherOptions {
  /** Instead of those of the gateway and its slots. */
  readonly ports?: readonly number[]
}

/** Looks at everything that the checks want to know. Changes nothing, and rejects for nothing that it finds. */
export async function gatherFacts (
  cli: Cli, client: () => ApiClient, paths: Paths, options: GatherOptions
): Promise<DoctorFacts> {
  const { env } = cli
  const clock = createSystemClock()
  const parts = await loadParts({ paths, schema: svcSchema }, null)
  const svc = parts.svc.value ?? svcConfigSchema.parse({})
  const store = storeOf(env, svc.models, paths)
  const [
    hasSystemctl, folders, hasProcessEngine, container, hardware, nodes, disk, ports, home, gateway, cluster
  ] = await Promise.all([
    isOnPath('systemctl', env.PATH ?? ''),
    writableFolders(paths, store),
    findsProcessEngine(cli, paths, svc),
    containerEngine(cli, svc, { parts, paths }, clock),
    probeHardware({ root: '/', clock, diskPath: store }).catch((): HardwareInfo | null => null),
    openableNodes(),
    diskFacts(env, store, clock),
    portFacts(paths, svc, parts, options.ports),
    checkHome(paths, env),
    askGateway(client),
    clusterFacts(cli, parts, paths)
  ])
  cli.signal.throwIfAborted()
  return {
    platform: process.platform,
    arch: process.arch,
    nodeVersion: process.versions.node,
    nodeLeast: leastNode,
    driver: svc.runtime.driver,
    hasProcessEngine,
    user: userInfo().username,
    hasSystemctl,
    folders,
    hardware,
    nodes,
    disk,
    ports,
    files: await judgeFiles(paths, home),
    runtimes: gateway.problem === null ? await runtimeFacts(client) : null,
    plugins: await pluginFacts(client, gateway.problem === null, home.plugins),
    gateway,
    cluster,
    neighbour: await neighbourOn(cli, svc.server.port, ports),
    ...container
  }
}

async function isOnPath (program: string, path: string): Promise<boolean> {
  const found = await Promise.all(path.split(delimiter).map(folder => canAccess(join(folder, program), constants.X_OK)))
  return found.includes(true)
}

function canAccess (path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(() => true, () => false)
}

function writableFolders (paths: Paths, store: string): Promise<DoctorFacts['folders']> {
  const all = [
    { path: paths.etc, what: 'configuration' }, { path: paths.slots, what: 'slots' }, { path: paths.state, what: 'state' },
    { path: store, what: 'models' }
  ]
  return Promise.all(all.map(async ({ path, what }) => ({ path, what, problem: await whyNotWritable(path) })))
}

/** A folder that is not there can be made where the nearest one above it can be written. */
async function whyNotWritable (path: string): Promise<string | null> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => error)
  if (stats instanceof Error) {
    if (stats.code !== 'ENOENT') return `cannot be read (${stats.code ?? stats.message})`
    const above = await whyNotWritable(dirname(path))
    return above === null ? null : 'does not exist and cannot be created'
  }
  if (!stats.isDirectory()) return 'is no folder'
  return await canAccess(path, constants.W_OK | constants.X_OK) ? null : 'cannot be written by this user'
}

async function containerEngine (
  cli: Cli, svc: SvcConfig, home: { readonly parts: ConfigParts, readonly paths: Paths }, clock: Clock
): Promise<Pick<DoctorFacts, 'engines' | 'images'>> {
  const { driver, connect_timeout_s: patienceS } = svc.runtime
  const engines: Array<DoctorFacts['engines'][number]> = []
  for (const candidate of runtimeCandidates(driver, cli.env, process.getuid?.() ?? null)) {
    const outcome = await tryCandidate(candidate, clock, patienceS)
    cli.signal.throwIfAborted()
    if ('why' in outcome) {
      engines.push({ source: candidate.source, problem: outcome.why, name: '' })
      continue
    }
    try {
      const { kind, version } = outcome.facts
      engines.push({ source: candidate.source, problem: null, name: `${kind === 'podman' ? 'Podman' : 'Docker'} ${version}` })
      return { engines, images: await imageFacts(cli, outcome, home) }
    } finally {
      outcome.close()
    }
  }
  return { engines, images: null }
}

async function imageFacts (cli: Cli, engine: DockerEngine, { parts, paths }: { readonly parts: ConfigParts, readonly paths: Paths }): Promise<DoctorFacts['images']> {
  const manifest = layManifest((await homeProviders(paths)).images, parts.manifest.value)
  const present: string[] = []
  const absent: string[] = []
  for (const name of Object.keys(manifest.toolbox_images)) {
    const { ref, digest } = resolveImage(name, manifest, cli.env)
    const isHere = await imagePresent(engine, ref, digest, cli.signal).catch(() => false)
    cli.signal.throwIfAborted()
    const list = isHere ? present : absent
    list.push(name)
  }
  return { present, absent }
}

async function openableNodes (): Promise<readonly DeviceNode[]> {
  const text = await readFile('/etc/group', 'utf8').catch(() => '')
  const groups = new Map(text.split('\n').map(line => line.split(':')).map(([name = '', , gid = '']) => [Number(gid), name]))
  return await Promise.all((deviceNodes(process.platform) ?? []).map(async path => {
    const gid = await stat(path).then(stats => stats.gid, () => -1)
    return { path, canOpen: await canAccess(path, constants.R_OK | constants.W_OK), group: groups.get(gid) ?? `group ${gid}` }
  }))
}

async function diskFacts (env: Cli['env'], store: string, clock: Clock): Promise<DoctorFacts['disk']> {
  const files = createProbeFiles('/', clock, 3000)
  try {
    const path = env.SVC_DISK_TARGET ?? store
    const least = Number(env.SVC_DISK_MIN_GB ?? '')
    return { path, freeBytes: await files.diskFree(path), leastGb: env.SVC_DISK_MIN_GB !== undefined && least >= 0 ? least : 20 }
  } finally {
    files.close()
  }
}

async function portFacts (
  paths: Paths, svc: SvcConfig, parts: ConfigParts, asked: readonly number[] | undefined
): Promise<readonly PortFacts[]> {
  const uses = new Map<number, { readonly use: string, readonly isSlot: boolean }>()
  for (const { value } of parts.slots.values()) {
    if (value?.port != null && value.enabled) uses.set(value.port, { use: `slot ${value.name}`, isSlot: true })
  }
  const running = await gatewayAt(paths)
  const gateway = 'pid' in running ? running.pid : null
  // one that was told another port needs that of the file no more than a port that the system chose for it
  const port = running.state === 'listening' ? Number(new URL(running.url).port) : svc.server.port
  if (port !== 0) uses.set(port, { use: 'the gateway', isSlot: false })
  const ports = asked ?? [...uses.keys()].sort((a, b) => a - b)
  const holders = await holdersOf(ports) ?? new Map<number, never>()
  return ports.map(port => {
    const { use = null, isSlot = false } = uses.get(port) ?? {}
    const holder = holders.get(port) ?? null
    return { port, use, isSlot, holder, isOwn: gateway !== null && (isSlot || holder?.pid === gateway) }
  })
}

async function neighbourOn (cli: Cli, port: number, ports: readonly PortFacts[]): Promise<DoctorFacts['neighbour']> {
  if (!ports.some(facts => facts.port === port && facts.holder !== null && !facts.isOwn)) return null
  const told = await cli.clientAt(`http://127.0.0.1:${port}`).call({ path: '/api/status', timeoutMs: 3000 }, neighbourSchema).catch(() => null)
  return told === null ? null : { port, home: told.home }
}

const neighbourSchema = z.looseObject({ home: z.string().nullable() })

async function runtimeFacts (clientOf: () => ApiClient): Promise<DoctorFacts['runtimes']> {
  const schema = z.looseObject({ runtimes: runtimesSchema })
  return await clientOf().call({ path: '/api/status', timeoutMs: 3000 }, schema).then(({ runtimes }) => runtimes, () => null)
}

/** As the gateway tells them, or as one would find them. */
async function pluginFacts (clientOf: () => ApiClient, isUp: boolean, declared: readonly KnownPlugin[]): Promise<DoctorFacts['plugins']> {
  const reports = isUp ? await clientOf().call({ path: '/api/plugins', timeoutMs: 3000 }, pluginListSchema).catch(() => null) : null
  if (reports === null) return declared.flatMap(({ name, fault }) => fault === null ? [] : [{ name, problem: `${fault.code}: ${fault.message}` }])
  return reports.flatMap(report => {
    if (report.state === 'failed' || report.state === 'skipped') return [{ name: report.name, problem: reasonOf(report) }]
    const waiting = waitingText(report)
    return waiting === null ? [] : [{ name: report.name, problem: waiting }]
  })
}

const healthSchema = z.looseObject({ status: z.string() })

async function askGateway (clientOf: () => ApiClient): Promise<DoctorFacts['gateway']> {
  let url: string | null = null
  try {
    const client = clientOf()
    url = client.base
    const { status } = await client.call({ path: '/api/health', timeoutMs: 3000 }, healthSchema)
    return { url, status, problem: null }
  } catch (error) {
    return { url, status: null, problem: error instanceof Error ? error.message : String(error) }
  }
}
