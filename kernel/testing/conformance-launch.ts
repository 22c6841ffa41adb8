import {
  hardwareSchema, modelRowSchema, slotConfigSchema, type EngineProvider, type LaunchInput, type LaunchSpecInput,
  type SlotConfig, type SlotConfigInput
} from '../contract/index.js'
import { planArgv, planLaunch } from '../slots/plan/launch/launch-plan.js'

export const PORT = 7654
/** Of the first further port; the others follow. */
const FURTHER_PORT = 7655

/** What a launch of the kit may be made of besides the provider. */
export interface ConformanceLaunch {
  /** A slot the provider can run, besides its name: type, device, options. */
  readonly slot?: SlotConfigInput
  /** For an engine with models of its own: one of them, as people write it. */
  readonly engineModel?: string
}

/** What the kernel makes of a launch. Throws as it does. */
export function plan (provider: EngineProvider, launch: LaunchInput): unknown {
  return planLaunch({
    launch,
    provider,
    mtp: false,
    access: { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {} },
    image: { ref: 'image', digest: null },
    publishHost: '127.0.0.1'
  })
}

export function specInput (provider: EngineProvider, launch: LaunchInput): LaunchSpecInput {
  return { ...launch, argv: planArgv(provider, launch, false).argv }
}

/** A launch of the first type and device that the provider names. */
export function launchInput (
  provider: EngineProvider, form: 'container' | 'process', { slot = {}, engineModel }: ConformanceLaunch
): LaunchInput {
  const model = { ...modelRowSchema.parse({ path: '/models/test.gguf' }), id: 'test' }
  const own = { type: provider.slotTypes[0], device: provider.devices[0], provider: provider.name }
  const config = { ...slotConfigSchema.parse({ ...own, ...slot }), provider: provider.name }
  const options = provider.slotOptions?.parse(config.options) as SlotConfig['options'] | undefined
  return {
    slot: { ...config, options: options ?? config.options, name: 'conformance' },
    device: provider.devices[0]!,
    form,
    bindHost: form === 'container' ? '0.0.0.0' : '127.0.0.1',
    port: PORT,
    ports: furtherPorts(provider),
    model: provider.takesModel ?? provider.needsModel ? model : null,
    ...provider.models === undefined
      ? {}
      : { engineModels: { id: engineModel === undefined ? null : provider.models.canonical(engineModel), store: '/store/models' } },
    profile: null,
    contextSize: 8192,
    chatTemplatePath: null,
    mmprojPath: null,
    modelRoots: ['/models'],
    hardware: hardwareSchema.parse({}),
    stateDir: '/var/lib/svc/slots/conformance',
    engineKey: 'sk-svc-key-of-the-conformance-kit'
  }
}

export function furtherPorts ({ ports = [] }: EngineProvider): Readonly<Record<string, number>> {
  return Object.fromEntries(ports.map((name, i) => [name, FURTHER_PORT + i]))
}
