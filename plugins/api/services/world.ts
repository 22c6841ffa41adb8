import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type {
  ConfigService, GatewayInfo, DaemonSpec, NamedSlotConfig, ServiceDescriptor, ServiceWorld, SlotService, SlotType
} from 'svc-gateway/plugin'
import { servicesError } from './errors.js'
import type { Kept } from './kept.js'
import type { ProgramForm } from './ref.js'

export interface ServiceSettings {
  readonly port?: number | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
}

export interface WorldDeps {
  readonly config: ConfigService
  readonly info: GatewayInfo
  readonly slots: SlotService
  /** Folder of the plugin; each service has one in it. */
  readonly folder: string
  readonly settings: Readonly<Record<string, ServiceSettings>>
}

/** Where a service listens: where the gateway does, unless it must not be reached from elsewhere. */
export function placeOf (
  { config, settings }: Pick<WorldDeps, 'config' | 'settings'>, service: ServiceDescriptor
): { readonly host: string, readonly port: number } {
  const host = service.loopback === true ? '127.0.0.1' : config.snapshot.svc.server.host
  return { host, port: settings[service.id]?.port ?? service.port }
}

/** Folder of all that one service has here. */
export function folderOf ({ folder }: Pick<WorldDeps, 'folder'>, id: string): string {
  return join(folder, id)
}

/** The type of a slot that the service does not work without, and that is not there. */
export function missingSlot (deps: Pick<WorldDeps, 'config' | 'slots'>, { needs = [] }: ServiceDescriptor): SlotType | undefined {
  const there = new Set(enabledSlots(deps).map(({ type }) => type))
  return needs.find(type => !there.has(type))
}

/** Throws `services.cannot_install` while one is missing. */
export function mustHaveSlots (deps: Pick<WorldDeps, 'config' | 'slots'>, service: ServiceDescriptor): void {
  const type = missingSlot(deps, service)
  if (type === undefined) return
  const { id, name } = service
  throw servicesError('services.cannot_install',
    `${name} needs a slot of type ${type}, and none is enabled: create one with \`svc slot create ${usualNames[type]} --type ${type}\``,
    { details: { service: id, needs: type } })
}

export const usualNames: Readonly<Record<SlotType, string>> = {
  llm: 'agent', embedding: 'embed', reranking: 'rerank', transcription: 'stt', tts: 'tts', image: 'img'
}

function enabledSlots ({ config, slots }: Pick<WorldDeps, 'config' | 'slots'>): readonly NamedSlotConfig[] {
  return [...config.snapshot.slots.values()].filter(slot => slot.enabled && slots.names().includes(slot.name))
}

/** What runs as the service, ready to be started. Makes the folder of its data. Throws as `mustHaveSlots`. */
export async function programOf (
  deps: WorldDeps, service: ServiceDescriptor, form: ProgramForm, kept: Kept
): Promise<DaemonSpec> {
  mustHaveSlots(deps, service)
  const { id, python, container } = service
  const own = folderOf(deps, id)
  const data = join(own, 'data')
  await mkdir(data, { recursive: true, mode: 0o700 })
  const world = await worldOf(deps, service, form === 'container' ? container!.data : data)
  const env = { ...service.env?.(world), ...deps.settings[id]?.env }
  const { host, port } = world
  if (form === 'container') {
    const { image, command, foreignUser = false } = container!
    // the folder above it is closed to other users of this machine
    if (foreignUser) await chmod(data, 0o777)
    const mounts = [{ source: data, target: container!.data, readOnly: false }]
    return { id, host, port, env, form: { kind: 'container', image, command: command?.(world) ?? null, mounts } }
  }
  const bin = join(own, kept.environment ?? '', 'bin')
  const { program, args } = python!.command(world)
  const usual = { PATH: `${bin}:${process.env.PATH ?? ''}`, PYTHONUNBUFFERED: '1' }
  return { id, host, port, env: { ...usual, ...env }, form: { kind: 'process', command: join(bin, program), args, workingDir: data } }
}

async function worldOf (deps: WorldDeps, service: ServiceDescriptor, dataDir: string): Promise<ServiceWorld> {
  const { info, config } = deps
  const secret = await secretOf(folderOf(deps, service.id))
  const enabled = enabledSlots(deps)
  return {
    ...placeOf(deps, service),
    gateway: info.baseUrl ?? `http://127.0.0.1:${config.snapshot.svc.server.port}`,
    dataDir,
    secret,
    slot: type => {
      const fitting = enabled.filter(slot => slot.type === type)
      return (fitting.find(slot => slot.default) ?? fitting[0])?.name ?? null
    }
  }
}

/** Kept in a file that only the gateway's user reads. An empty one was left by a gateway that was killed while it made it. */
async function secretOf (folder: string): Promise<string> {
  const file = join(folder, 'secret')
  const known = await readFile(file, 'utf8').catch(() => '')
  if (known !== '') return known
  const made = randomBytes(32).toString('hex')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(file, made, { mode: 0o600 })
  return made
}
