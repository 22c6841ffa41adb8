import type { AnyPlugin, BootPhase, ErrorCode, PluginReport, PluginState, SvcError } from '../contract/index.js'
import type { KnownPlugin } from './plugin-findings.js'
import type { Stage } from './stage.js'

/** Where a plugin comes from and how to get at it, before anything of it was run. */
export interface Candidate {
  readonly name: string
  readonly origin: string
  /** Read without importing; null for what ships with the gateway. */
  readonly manifest: PluginManifest | null
  /** A problem found while it was looked up. */
  readonly problem: SvcError | null
  /** Folder its code comes from, as it shows in stacks; null when unknown. */
  readonly root: string | null
  readonly load: () => Promise<unknown>
}

export interface PluginManifest {
  readonly apiVersion: number
  readonly kind: string
}

/** One plugin on its way through the boot steps. Only the host writes it. */
export interface PluginRecord {
  readonly name: string
  readonly candidate: Candidate
  state: PluginState | 'booting'
  phase: BootPhase
  code: ErrorCode | null
  message: string | null
  ms: number
  plugin: AnyPlugin | null
  stage: Stage | null
  config: unknown
  /** Routes it really makes, found in the dry run. */
  routeKeys: ReadonlySet<string>
  /** Settles when its onStart is over; requests that come earlier wait for it. */
  started: Promise<void> | null
}

export function newRecord (candidate: Candidate): PluginRecord {
  return {
    name: candidate.name,
    candidate,
    state: 'booting',
    phase: 'discover',
    code: null,
    message: null,
    ms: 0,
    plugin: null,
    stage: null,
    config: undefined,
    routeKeys: new Set(),
    started: null
  }
}

/** Marks the end of a plugin's way. The first reason stands. */
export function fail (record: PluginRecord, phase: BootPhase, code: ErrorCode, message: string): void {
  if (record.state === 'failed' || record.state === 'skipped') return
  Object.assign(record, { state: 'failed', phase, code, message })
}

export function skip (record: PluginRecord, phase: BootPhase, culprit: string): void {
  if (record.state === 'failed' || record.state === 'skipped') return
  Object.assign(record, {
    state: 'skipped', phase, code: 'plugin.dependency_failed', message: `it requires a service of plugin '${culprit}', which is not active`
  })
}

export function isAlive (record: PluginRecord): boolean {
  return record.state === 'booting' || record.state === 'active'
}

export function knownPlugin ({ name, candidate: { origin }, plugin, phase, state, code, message }: PluginRecord): KnownPlugin {
  const isUnread = state === 'failed' && plugin === null && phase !== 'discover'
  const fault = isUnread ? { code: code ?? 'plugin.import_failed', message: message ?? '' } as const : null
  return { name: plugin?.name ?? name, origin, plugin, fault }
}

export function toReport (record: PluginRecord): PluginReport {
  const { stage } = record
  const health = stage === null || record.state !== 'active' ? {} : healthOf(stage)
  return {
    name: record.plugin?.name ?? record.name,
    kind: record.plugin?.kind ?? record.candidate.manifest?.kind ?? null,
    state: record.state === 'booting' ? 'active' : record.state,
    phase: record.phase,
    code: record.code,
    message: record.message,
    ms: Math.round(record.ms * 10) / 10,
    origin: record.candidate.origin,
    routes: (stage?.routes ?? []).map(route => `${route.method} ${route.url}`),
    providers: (stage?.providers ?? []).map(provider => provider.name),
    ...(Object.keys(health).length === 0 ? {} : { health })
  }
}

function healthOf (stage: Stage): Record<string, unknown> {
  const health: Record<string, unknown> = {}
  for (const probe of stage.healthProbes) {
    try {
      Object.assign(health, probe())
    } catch (error) {
      health.error = error instanceof Error ? error.message : String(error)
    }
  }
  return health
}
