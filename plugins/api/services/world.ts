import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type {
  ConfigService, GatewayInfo, DaemonSpec, ServiceDescriptor, ServiceWorld, SlotService
} from 'svc-gateway/plugin'
import type { Kept } from './kept.js'
import type { InstallForm } from './ref.js'

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

/** What runs as the service, ready to be started. Makes the folder of its data. */
export async function programOf (
  deps: WorldDeps, service: ServiceDescriptor, form: InstallForm, kept: Kept
): Promise<DaemonSpec> {
  const { id, python, container } = service
  const own = folderOf(deps, id)
  const data = join(own, 'data')
  await mkdir(data, { recursive: true, mode: 0o700 })
  const world = await worldOf(deps, service, form === 'container' ? container!.data : data)
  const env = { ...service.env?.(world), ...deps.settings[id]?.env }
  const { host, port } = world
  if (form === 'container') {
    const { image, command } = container!
    const mounts = [{ source: data, target: container!.data, readOnly: false }]
    return { id, host, port, env, form: { kind: 'container', image, command: command?.(world) ?? null, mounts } }
  }
  const bin = join(own, kept.environment ?? '', 'bin')
  const { program, args } = python!.command(world)
  const usual = { PATH: `${bin}:${process.env.PATH ?? ''}`, PYTHONUNBUFFERED: '1' }
  return { id, host, port, env: { ...usual, ...env }, form: { kind: 'process', command: join(bin, program), args, workingDir: data } }
}

async function worldOf (deps: WorldDeps, service: ServiceDescriptor, dataDir: string): Promise<ServiceWorld> {
  const { info, config, slots } = deps
  const secret = await secretOf(folderOf(deps, service.id))
  const enabled = [...config.snapshot.slots.values()].filter(slot => slot.enabled && slots.names().includes(slot.name))
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
