import { z } from 'zod'
import { mainGpuOf, svcConfigSchema, type HardwareInfo, type Paths, type SvcConfig } from '../../../kernel/contract/index.js'
import { loadParts } from '../../../kernel/config/load/load-parts.js'
import { probeHardware } from '../../../kernel/hardware/probe.js'
import { runtimeCandidates } from '../../../kernel/runtime/runtime-candidates.js'
import { tryCandidate } from '../../../kernel/runtime/select-runtime.js'
import { findProgram } from '../../../kernel/runtime/programs/program-search.js'
import { createSystemClock } from '../../../kernel/state/system-clock.js'
import { ownLibrary } from '../../../plugins/providers/llm-server/embedded-engine.js'
import { buildFor, EMBEDDED, libraryGpus, type LibraryGpu } from '../../../plugins/providers/llm-server/ref.js'
import { embeddedWords, PROGRAM, words } from '../../../plugins/providers/llm-server/words.js'
import type { Cli } from '../../cli.js'
import { CliFailure, usageFailure } from '../../failure.js'
import { barOf } from '../../pull/progress-line.js'
import { sizeText } from '../../terminal/size-text.js'
import { slotListSchema } from '../../record/slot-record.js'
import { requireHome } from '../home/home-of.js'
import { addressOf } from '../home/running-gateway.js'
import { canRead, EngineStore, type InstalledEngine } from './engine-store.js'
import { svcSchema } from '../svc-schema.js'

export const gpuChoices = ['auto', 'none', ...libraryGpus] as const

/** Unpacked, as far as that is known before the download; only the bar needs it. */
const ABOUT_BYTES: Readonly<Record<LibraryGpu | 'cpu', number>> = { cpu: 78e6, vulkan: 85e6, cuda: 450e6 }

export interface InstallEngineOptions {
  readonly gpu: typeof gpuChoices[number]
}

export async function installEngine (cli: Cli, name: string, paths: Paths, options: InstallEngineOptions): Promise<void> {
  requireKnown(name)
  await requireHome(paths)
  const engine = await bringEmbedded(cli, paths, options)
  cli.out.line(`${engine.name} ${engine.version} is installed: ${sizeText(engine.bytes)}, for ${buildNames(engine)}.`)
  cli.out.line(await addressOf(paths) === null
    ? 'Slots use it from the next start of the gateway.'
    : 'Slots use it from their next start: svc slot load <name>')
}

/** Downloads the embedded engine for this machine, and shows how far it is. */
export async function bringEmbedded (cli: Cli, paths: Paths, { gpu: asked }: InstallEngineOptions): Promise<InstalledEngine> {
  const { out } = cli
  const gpu = asked === 'auto' ? await usableGpu() : asked === 'none' ? null : asked
  const about = ABOUT_BYTES.cpu + (gpu === null ? 0 : ABOUT_BYTES[gpu])
  out.note(`Installing the embedded engine for ${process.arch}${gpu === null ? '' : ` and ${gpu}`}, about ${Math.round(about / 1e6)} MB ...`)
  out.note(embeddedWords.origin)
  const onProgress = (bytes: number): void => {
    const share = Math.min(0.99, bytes / about)
    out.redraw(`[${barOf(share, 30)}] ${String(Math.floor(share * 100)).padStart(3)} %  ${sizeText(bytes)}`)
  }
  try {
    return await new EngineStore(cli, paths).install({ gpu, onProgress })
  } finally {
    out.redraw('')
  }
}

export async function listEngines (cli: Cli, paths: Paths, { json }: { readonly json?: true }): Promise<void> {
  const found = await new EngineStore(cli, paths).find()
  if (json === true) return cli.out.json(found === null ? [] : [found])
  if (found !== null) {
    return cli.out.table<InstalledEngine>([
      { title: 'ENGINE', cell: engine => engine.name },
      { title: 'VERSION', cell: engine => engine.version },
      { title: 'FOR', cell: buildNames },
      { title: 'SIZE', cell: engine => sizeText(engine.bytes) },
      { title: 'FOLDER', cell: engine => engine.folder, flexible: true, expendable: 1 }
    ], [found])
  }
  cli.out.line(await canRead(ownLibrary())
    ? 'No engine is installed for this home; the embedded engine comes with this copy of svc.'
    : 'No engine is installed. Get the one for machines without containers: svc engine install embedded')
}

export interface RemoveEngineOptions { readonly force?: true }

/** Slots that run on it are named, and with `force` unloaded first: an engine does not lose its files while it answers. */
export async function removeEngine (cli: Cli, name: string, paths: Paths, { force }: RemoveEngineOptions): Promise<void> {
  requireKnown(name)
  const store = new EngineStore(cli, paths)
  if (await store.find() === null) throw new CliFailure(`${name} is not installed`, { hints: ['`svc engine list` shows the installed engines.'] })
  const url = await addressOf(paths)
  const users = url === null ? [] : await slotsOn(cli, url)
  if (users.length > 0 && force !== true) {
    throw new CliFailure(`${users.length === 1 ? 'slot' : 'slots'} ${users.join(', ')} ${users.length === 1 ? 'runs' : 'run'} on ${name}`, {
      hints: [`Unload ${users.length === 1 ? 'it' : 'them'} first (svc slot unload ${users[0]!}), or use --force.`]
    })
  }
  for (const slot of users) {
    cli.out.note(`Unloading slot ${slot} ...`)
    await cli.clientAt(url!).call({ method: 'POST', path: `/api/slots/${encodeURIComponent(slot)}/unload`, timeoutMs: null }, z.unknown())
  }
  await store.remove()
  cli.out.line(`${name} is removed.`)
  if (users.length > 0) cli.out.line(`Slots without an engine now: ${users.join(', ')}`)
}

/** Whether child processes of this home find an engine for models: an installed program or the embedded one. */
export async function findsProcessEngine (cli: Cli, paths: Paths, svc: SvcConfig): Promise<boolean> {
  // one that cannot be read is none that would run
  const find = async (): Promise<InstalledEngine | null> => await new EngineStore(cli, paths).find().catch(() => null)
  if (await canRead(ownLibrary()) || await find() !== null) return true
  const { binary } = (svc.plugins.config[words.name] ?? {}) as { readonly binary?: unknown }
  for (const command of [typeof binary === 'string' ? binary : '', PROGRAM]) {
    if (command !== '' && await findProgram(command, cli.env.PATH ?? '') !== null) return true
  }
  return false
}

/** Whether nothing on this machine can run a model: no container engine, and no engine for child processes. */
export async function lacksEngine (cli: Cli, paths: Paths): Promise<boolean> {
  const parts = await loadParts({ paths, schema: svcSchema }, null)
  const svc = parts.svc.value ?? svcConfigSchema.parse({})
  if (await findsProcessEngine(cli, paths, svc)) return false
  const { driver, connect_timeout_s: patienceS } = svc.runtime
  for (const candidate of runtimeCandidates(driver, cli.env, process.getuid?.() ?? null)) {
    const outcome = await tryCandidate(candidate, createSystemClock(), patienceS)
    cli.signal.throwIfAborted()
    if ('why' in outcome) continue
    outcome.close()
    return false
  }
  return true
}

/** The GPU of this machine that the library has a build for. */
async function usableGpu (): Promise<LibraryGpu | null> {
  const clock = createSystemClock()
  const info: HardwareInfo | null = await probeHardware({ root: '/', clock, diskPath: '/' }).catch(() => null)
  const gpu = mainGpuOf(info?.gpus ?? [])
  if (gpu === undefined) return null
  const wanted = gpu.vendor === 'nvidia' && gpu.compute_capable ? 'cuda' : gpu.vulkan_capable ? 'vulkan' : null
  return wanted !== null && buildFor(process.platform, process.arch, wanted) !== null ? wanted : null
}

async function slotsOn (cli: Cli, url: string): Promise<string[]> {
  const slots = await cli.clientAt(url).call({ path: '/api/slots' }, slotListSchema)
  return slots.filter(({ kind, runtime, metadata }) => kind !== 'remote' && runtime === 'process' && metadata.engine === EMBEDDED).map(({ name }) => name)
}

function requireKnown (name: string): void {
  if (name !== EMBEDDED) {
    throw usageFailure(`there is no engine '${name}' to install`, [`The only one is ${EMBEDDED}. Engines from plugins are added with \`svc plugin add\`.`])
  }
}

function buildNames ({ builds }: InstalledEngine): string {
  return builds.map(build => build.slice(build.indexOf('/') + 1)).join(', ')
}
