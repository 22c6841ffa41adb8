import { createHash } from 'node:crypto'
import {
  canonicalJson, gpuBackendOf, svcError, type EngineProvider, type LaunchInput, type LaunchSpecInput, type ProcessCandidate,
  type ProviderSegments, type SvcError
} from '../../../contract/index.js'
import type { ContainerForm } from '../../../contract/provider/engine-runtime.js'
import { extraArgsWords, modelDefaultsWords, profileWords, serverEnv } from '../argv/flag-texts.js'
import { mergeArgv, type MergedArgv } from '../argv/merge.js'

/** What the slot's device gives the engine (kernel/runtime/device/gpu-visibility.ts). */
export interface DeviceAccess {
  readonly devices: readonly string[]
  readonly cdiDevices: readonly string[]
  readonly groups: readonly number[]
  readonly securityOpts: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export interface PlanInput {
  readonly launch: LaunchInput
  readonly provider: EngineProvider
  readonly mtp: boolean
  /** The driver that is asked for by name; null: whichever takes its form. */
  readonly runtime?: string | null
  /** What of svc.toml that driver puts into the engine, as plain data. */
  readonly runtimeSettings?: object
  readonly access: DeviceAccess
  readonly image: { readonly ref: string, readonly digest: string | null } | null
  readonly publishHost: string
}

/** A launch, decided and not done: equal inputs give equal plans and equal hashes. */
export interface LaunchPlan {
  readonly argv: MergedArgv
  readonly env: Readonly<Record<string, string>>
  readonly form: ContainerForm | { readonly kind: 'candidates', readonly candidates: readonly ProcessCandidate[] }
  /** Engines with the same hash are interchangeable: adoption and drift compare it. */
  readonly configHash: string
  /** Requests the engine works on at once; null takes as many as it is given. */
  readonly workers: number | null
  /** What every request to the engine carries, names in lower case; null: nothing. */
  readonly headers: Readonly<Record<string, string>> | null
}

/** The merged command line of a slot, shared by launch and by `GET /api/slots/{name}/resolved`. */
export function planArgv (provider: EngineProvider, launch: LaunchInput, mtp: boolean): MergedArgv {
  const own: ProviderSegments = provider.argvSegments?.(launch) ?? {}
  const extra = extraArgsWords(launch.slot, provider.flags)
  if (launch.model !== null) modelDefaultsWords(launch.model, provider.flags)
  const tuned = launch.profile === null ? [] : profileWords(launch.profile, provider.flags)
  const backend = launch.profile === null ? gpuBackendOf(launch.device) : launch.profile.backend
  const draft = mtp ? provider.flags?.mtp?.(backend) ?? [] : []
  return mergeArgv({ ...own, profile: [...draft, ...tuned], extra_args: extra }, provider.flags)
}

export function planLaunch (input: PlanInput): LaunchPlan {
  const { launch, provider, access } = input
  const argv = planArgv(provider, launch, input.mtp)
  const specInput = { ...launch, argv: argv.argv }
  const explicit = serverEnv(launch.slot, provider.flags)
  const workers = provider.concurrency === undefined ? launch.slot.workers : provider.concurrency(specInput)
  const headers = headersOf(provider, specInput)
  if (launch.form === 'process') {
    const candidates = provider.processSpec?.(specInput) ?? []
    const env = { ...access.env, ...explicit }
    return { argv, env, form: { kind: 'candidates', candidates }, configHash: hashOf({ candidates, env, ...portsOf(launch), ...runtimeIn(input) }), workers, headers }
  }
  const spec = provider.containerSpec(specInput)
  const image = spec.image === undefined ? input.image : { ref: spec.image, digest: null }
  if (image === null) throw noImage(launch.slot.name, provider)
  const network = spec.network ?? 'bridge'
  const form: ContainerForm = {
    kind: 'container',
    image: image.ref,
    digest: image.digest,
    entrypoint: spec.entrypoint ?? null,
    command: spec.command,
    mounts: [...launch.modelRoots.map(root => ({ source: root, target: root, readOnly: true })), ...spec.mounts ?? []],
    devices: [...access.devices, ...spec.devices ?? []],
    cdiDevices: access.cdiDevices,
    groups: access.groups,
    network,
    publishHost: network === 'host' ? null : input.publishHost,
    ipc: spec.ipc ?? 'private',
    shmSizeBytes: spec.shmSizeBytes ?? null,
    ulimits: spec.ulimits ?? {},
    securityOpts: access.securityOpts,
    workingDir: spec.workingDir ?? null
  }
  const env = { ...spec.env, ...access.env, ...explicit }
  return { argv, env, form, configHash: hashOf({ form, env, ...portsOf(launch), ...runtimeIn(input) }), workers, headers }
}

/** An engine without further ports has the hash that it always had. */
function portsOf ({ port, ports }: LaunchInput): object {
  return Object.keys(ports).length === 0 ? { port } : { port, ports }
}

/** An engine of one driver does not stand in for one of another. */
function runtimeIn ({ runtime = null, runtimeSettings: settings = {}, launch }: PlanInput): object {
  const { runtime_options: options } = launch.slot
  const told = Object.keys(options).length === 0 ? {} : { options }
  const given = Object.keys(settings).length === 0 ? {} : { settings }
  return runtime === null ? {} : { runtime, ...told, ...given }
}

function headersOf (provider: EngineProvider, input: LaunchSpecInput): LaunchPlan['headers'] {
  const given = Object.entries(provider.headers?.(input) ?? {})
  return given.length === 0 ? null : Object.fromEntries(given.map(([name, value]) => [name.toLowerCase(), value]))
}

function noImage (slot: string, provider: EngineProvider): SvcError {
  const beside = provider.processSpec === undefined ? '' : ', or `runtime = "process"` to run the engine as a process'
  return svcError('slot.config_error', `slot '${slot}' has no container image: give it a profile or an \`image\`${beside}`, { details: { slot } })
}

function hashOf (value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 32)
}
