import type {
  AgentFile, ConfigFileDefinition, Diagnostic, ExternalProvider, HardwareInfo, Manifest,
  NamedProfile, NamedToolServer, SvcConfig, Upstream, WrittenSlot
} from '../../contract/index.js'

/** What one file says, as far as it is good, and what is wrong with it. `value` is null when nothing of it ever was. */
export interface Part<T> {
  readonly value: T
  readonly diagnostics: readonly Diagnostic[]
}

/** With words that only providers have: read again when these are others. */
export interface SlotPart extends Part<WrittenSlot | null> { readonly hasForeignWord?: true }

/** Everything under the configuration root, file by file: so that each can keep its last good value. */
export interface ConfigParts {
  readonly svc: Part<SvcConfig | null>
  /** By name of the slot; one for every file, also for those that are left out. */
  readonly slots: ReadonlyMap<string, SlotPart>
  /** Problems of the folder and of files in it that are no slots. */
  readonly slotFolder: readonly Diagnostic[]
  /** By name of the agent; null for one whose file was never good. */
  readonly agents: ReadonlyMap<string, Part<AgentFile | null>>
  /** Whether all of them are known. */
  readonly agentFolder: Part<boolean>
  readonly profiles: Part<readonly NamedProfile[]>
  readonly upstreams: Part<readonly Upstream[]>
  readonly providers: Part<readonly ExternalProvider[]>
  /** By id; one for every file, also for those that are left out. */
  readonly toolServers: ReadonlyMap<string, Part<NamedToolServer | null>>
  readonly toolServerFolder: readonly Diagnostic[]
  readonly manifest: Part<Manifest | null>
  readonly hardware: Part<HardwareInfo>
  readonly secrets: Part<ReadonlyMap<string, string>>
  /** Files of plugins, by name. */
  readonly owned: ReadonlyMap<string, Part<unknown> & { readonly definition: ConfigFileDefinition }>
}

/** Names below the configuration root; diagnostics show them. */
export const configFiles = {
  svc: 'svc.toml',
  profiles: 'profiles.toml',
  upstreams: 'upstreams.toml',
  providers: 'providers.toml',
  manifest: 'manifest.json',
  hardware: 'hardware.json',
  secrets: 'api.env'
} as const

export function slotFile (name: string): string {
  return `slots/${name}.toml`
}

export function toolServerFile (id: string): string {
  return `mcp-servers/${id}.toml`
}

export const agentFolder = 'agents'

export function agentFile (name: string): string {
  return `${agentFolder}/${name}.toml`
}

export function allDiagnostics (parts: ConfigParts): readonly Diagnostic[] {
  const { svc, slots, slotFolder, profiles, upstreams, providers, manifest, hardware, secrets } = parts
  const { agents, agentFolder: folder, toolServers, toolServerFolder } = parts
  return [
    ...svc.diagnostics, ...slotFolder, ...[...slots.values()].flatMap(slot => slot.diagnostics), ...folder.diagnostics,
    ...[...agents.values()].flatMap(agent => agent.diagnostics), ...profiles.diagnostics,
    ...upstreams.diagnostics, ...providers.diagnostics,
    ...toolServerFolder, ...[...toolServers.values()].flatMap(server => server.diagnostics),
    ...manifest.diagnostics, ...hardware.diagnostics, ...secrets.diagnostics,
    ...[...parts.owned.values()].flatMap(owned => owned.diagnostics)
  ]
}
