import { join } from 'node:path'
import type {
  ConfigService, Device, EngineProvider, HardwareService, LaunchInput, LaunchTrouble, ModelRegistry, NamedProfile,
  NamedSlotConfig, ProfileOutlook, ProviderCatalog, ResolvedArgv, SlotWish
} from '../../contract/index.js'
import { isMtpEligible } from '../../models/eligibility.js'
import type { EngineForm } from '../../contract/provider/engine-runtime.js'
import type { ResolvedImage } from '../../runtime/image/image-manifest.js'
import { contextSizeFor, hasContext, nativeContext } from './context/context-size.js'
import { chooseCandidate } from './launch/process-candidates.js'
import { assertRuntime, formOfRuntime, namedDriver, runsElsewhere, runtimeOf, settingsFor, type RuntimeChoice } from './slot-runtime.js'
import { makeMountPoints } from './launch/mount-points.js'
import { foldersOf } from './launch/launch-folders.js'
import { planArgv, planLaunch, type DeviceAccess, type LaunchPlan } from './launch/launch-plan.js'
import type { PreparedLaunch } from './launch/prepared-launch.js'
import { renderedLaunch } from './launch/rendered-launch.js'
import { KeptPlans } from './launch/kept-plans.js'
import { projectorOf, type MissingFile } from './launch/missing-files.js'
import { mtpEffective } from './mtp.js'
import { unknownProvider, type EffectiveSlot } from './effective-slot.js'
import { launchTroubles } from './launch/launch-troubles.js'
import { needsModel } from './needs-model.js'
import { profileOutlook } from './profile/profile-outlook.js'
import { slotProfile } from './profile/slot-profile.js'
import { assertRequirements } from './engine-requirements.js'
import { engineSpec } from './launch/engine-spec.js'
import { slotImage } from './slot-image.js'
import { misfitOf } from './slot-misfit.js'
import { slotNotFound } from '../schedule/slot-errors.js'
import { allPorts, NO_PORTS, type EnginePorts } from './launch/engine-ports.js'
import { runtimeOptions, slotOptions } from './slot-options.js'
import { Swaps } from './swaps.js'
import { noModel, SlotModels, takesModel } from './slot-models.js'

const NO_ACCESS: DeviceAccess = { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {} }

export interface SlotPlansDeps {
  readonly config: Pick<ConfigService, 'snapshot' | 'paths'>
  readonly models: ModelRegistry
  readonly providers: ProviderCatalog
  readonly hardware: Pick<HardwareService, 'info' | 'defaultDevice'>
  readonly runtime: RuntimeChoice
  readonly instance: string
  /** Short name or reference to a pullable image. */
  readonly image: (name: string) => ResolvedImage
  /** What the device gives an engine; throws `slot.load_failed` when it is not there. */
  readonly access: (
    engine: Pick<EngineProvider, 'vulkanVariable'>, device: Device, gpuIndex: number | null, form: 'container' | 'process'
  ) => DeviceAccess
  /** Secret of a slot's engines. */
  readonly engineKey: (slot: string) => string
  /** Search path for programs. */
  readonly path: string
}

/** Turns configuration and the swaps in force into launches. Keeps nothing else: everything is read where it lives. */
export class SlotPlans {
  readonly #deps: SlotPlansDeps
  readonly #kept: KeptPlans
  readonly #models: SlotModels
  readonly swaps = new Swaps()

  constructor (deps: SlotPlansDeps) {
    this.#deps = deps
    this.#models = new SlotModels(deps.models, this.swaps)
    this.#kept = new KeptPlans(name => this.#madeOf(name))
  }

  slot (name: string): NamedSlotConfig {
    const slot = this.#deps.config.snapshot.slots.get(name)
    if (slot === undefined) throw slotNotFound(name)
    return slot
  }

  provider (name: string): EngineProvider | null {
    return this.providerOf(this.slot(name))
  }

  providerOf (slot: NamedSlotConfig): EngineProvider | null {
    return this.#deps.providers.get(slot.provider) ?? null
  }

  modelId (name: string): string | null {
    const slot = this.slot(name)
    return this.#models.idOf(slot, this.providerOf(slot))
  }

  /** Why a slot cannot be given this model, in words; null when it can. */
  modelProblem (slot: NamedSlotConfig, id: string): string | null {
    return this.#models.problem(this.providerOf(slot), id)
  }

  device (slot: NamedSlotConfig): Device {
    if (slot.device !== undefined) return slot.device
    const { defaultDevice } = this.#deps.hardware
    const devices = this.#deps.providers.get(slot.provider)?.devices ?? []
    if (devices.length === 0 || devices.includes(defaultDevice)) return defaultDevice
    return devices.includes('cpu') ? 'cpu' : devices[0]!
  }

  profileOutlook (profile: NamedProfile): ProfileOutlook {
    return profileOutlook(profile, this.#deps.providers)
  }

  /** Throws `slot.config_error` for what cannot work, naming the field; `model.not_found` for a model that is nowhere. */
  effective (name: string): EffectiveSlot {
    return this.#kept.of('effective', name, () => this.#effective(name))
  }

  /** Everything that the command line of a slot comes from: as long as these are the same, it is. */
  #madeOf (name: string): readonly unknown[] {
    const { config, hardware, models, providers, runtime } = this.#deps
    const { snapshot } = config
    const provider = providers.get(snapshot.slots.get(name)?.provider ?? '')
    return [snapshot, this.swaps.of(name), models.list(), hardware.info, hardware.defaultDevice, provider, runtime.names?.()]
  }

  #effective (name: string): EffectiveSlot {
    const slot = this.slot(name)
    const provider = this.provider(name)
    if (provider === null) throw unknownProvider(slot, this.#deps.providers)
    assertRuntime(slot, this.driver(slot), this.#deps.runtime)
    const device = this.device(slot)
    const profile = slotProfile(slot, this.swaps.of(name)?.profile ?? slot.profile, provider, device, {
      profiles: this.#deps.config.snapshot.profiles, providers: this.#deps.providers
    })
    const model = provider.models === undefined ? this.#models.of(slot, provider) : null
    const told = runtimeOptions(slot, this.driver(slot), this.#deps.runtime)
    const own = { options: slotOptions(slot, provider), runtime_options: told }
    return { slot: { ...slot, ...own }, provider, device, profile, model }
  }

  /** Tokens; null for slot types that have no context window. */
  contextSize ({ slot, provider, model }: Pick<EffectiveSlot, 'slot' | 'provider' | 'model'>): number | null {
    if (!hasContext(slot)) return null
    const swap = this.swaps.of(slot.name)
    if (swap?.contextSize != null) return swap.contextSize
    const id = this.modelId(slot.name)
    return contextSizeFor(slot, id, nativeContext(provider, id, model))
  }

  /** @param ports those that the slot has, or would get */
  resolved (name: string, ports: EnginePorts = { port: this.slot(name).port ?? 0, named: {} }): ResolvedArgv {
    return this.#kept.of(`resolved ${JSON.stringify(ports)}`, name, () => this.#resolved(name, ports))
  }

  #resolved (name: string, ports: EnginePorts): ResolvedArgv {
    const effective = this.effective(name)
    if (effective.slot.type !== 'llm' && effective.profile === null) return { argv: null, provenance: [], removed: 0 }
    // shown to people
    const input = { ...this.#input(effective, ports), engineKey: '***' }
    const { argv, provenance, removed } = planArgv(effective.provider, input, this.#mtp(effective))
    return { argv, provenance, removed }
  }

  plan (name: string, ports: EnginePorts): LaunchPlan & { readonly image: ResolvedImage | null } {
    const effective = this.effective(name)
    const { config } = this.#deps
    const launch = this.#input(effective, ports)
    const image = this.image(name)
    const plan = planLaunch({
      launch,
      provider: effective.provider,
      mtp: this.#mtp(effective),
      runtime: this.driver(effective.slot),
      runtimeSettings: settingsFor(effective.slot, this.driver(effective.slot), this.#deps.runtime),
      access: this.#access(effective.slot, effective.provider, effective.device, launch.form),
      image,
      publishHost: config.snapshot.svc.slots.publish_host
    })
    if (plan.form.kind !== 'container') return { ...plan, image: null }
    return { ...plan, image: { ref: plan.form.image, digest: plan.form.digest, warning: image?.warning ?? null } }
  }

  /** How a slot runs: a process everywhere, a container only where there is a container engine. */
  form (slot: Pick<NamedSlotConfig, 'runtime' | 'provider'>): EngineForm {
    return formOfRuntime(runtimeOf(slot, this.#deps.providers), this.#deps.runtime)
  }

  /** What slots can be run by. */
  get runtime (): RuntimeChoice { return this.#deps.runtime }

  /** The driver that a slot asks for by its name; null: whichever takes its form. */
  driver (slot: Pick<NamedSlotConfig, 'runtime' | 'provider'>): string | null {
    return namedDriver(runtimeOf(slot, this.#deps.providers))
  }

  /** Whether the slot's engine runs on another machine. */
  isElsewhere (slot: Pick<NamedSlotConfig, 'runtime' | 'provider'>): boolean {
    return runsElsewhere(slot, this.#deps.providers, this.#deps.runtime)
  }

  /** The image a slot would run, or null for one that has none, and for one that runs as a process. */
  image (name: string): ResolvedImage | null {
    return this.#kept.of('image', name, () => this.#image(name))
  }

  #image (name: string): ResolvedImage | null {
    const effective = this.effective(name)
    return this.form(effective.slot) === 'process' ? null : slotImage(effective, this.#deps.image)
  }

  /** As `SlotService.misfit`. */
  misfit (wish: SlotWish): string | null {
    const { config, ...others } = this.#deps
    return misfitOf(wish, { ...others, profiles: config.snapshot.profiles })
  }

  /** Files of the next launch that cannot be read. Rejects with `slot.config_error`, as `effective` throws. */
  async missingFiles (name: string): Promise<readonly MissingFile[]> {
    const effective = this.effective(name)
    return this.isElsewhere(effective.slot) ? [] : await this.#models.missing(effective)
  }

  /** The same host with other slots and profiles, as a draft has them. Swaps that are in force do not count. */
  over ({ slots, profiles }: Pick<ConfigService['snapshot'], 'slots' | 'profiles'>): SlotPlans {
    const { paths, snapshot } = this.#deps.config
    return new SlotPlans({ ...this.#deps, config: { paths, snapshot: { ...snapshot, slots, profiles } } })
  }

  /** What would keep the slot from coming up, as far as that can be known without a start. */
  async troubles (name: string): Promise<readonly LaunchTrouble[]> {
    return await launchTroubles(this.effective.bind(this, name), {
      device: () => {
        const slot = this.slot(name)
        const [device, provider] = [this.device(slot), this.providerOf(slot)]
        this.#access(slot, provider ?? {}, device, this.form(slot))
        if (provider !== null && !this.isElsewhere(slot)) assertRequirements(slot, provider, device, this.#deps.hardware.info)
      },
      model: async effective => {
        if (needsModel(effective.provider, effective.slot) && this.modelId(name) === null) throw noModel(effective.slot)
        return this.isElsewhere(effective.slot) ? [] : await this.#models.missing(effective)
      },
      image: () => this.image(name),
      launch: async ({ provider }) => {
        const { form } = this.plan(name, NO_PORTS)
        if (form.kind !== 'container') await chooseCandidate(`slot '${name}'`, provider, form.candidates, this.#deps.path, '127.0.0.1')
      },
      hardware: this.isElsewhere(this.slot(name)) ? null : this.#deps.hardware.info
    })
  }

  /** A launch, checked against what is on this host: model files, programs. Throws what is missing. */
  async prepare (name: string, ports: EnginePorts, generation: number): Promise<PreparedLaunch> {
    const effective = this.effective(name)
    const { provider, slot } = effective
    if (needsModel(provider, slot) && this.modelId(name) === null) throw noModel(slot)
    const isElsewhere = this.isElsewhere(slot)
    if (!isElsewhere) {
      assertRequirements(slot, provider, effective.device, this.#deps.hardware.info)
      await this.#models.requireFiles(effective)
    }
    const plan = this.plan(name, ports)
    if (plan.form.kind === 'container' && !isElsewhere) await makeMountPoints(join(this.#deps.config.paths.state, 'slots', name), plan.form.mounts)
    const { publish_host: bindHost } = this.#deps.config.snapshot.svc.slots
    const { form, env } = plan.form.kind === 'container'
      ? { form: plan.form, env: {} }
      : await chooseCandidate(`slot '${name}'`, provider, plan.form.candidates, this.#deps.path, bindHost)
    const spec = engineSpec({
      instance: this.#deps.instance,
      effective,
      generation,
      configHash: plan.configHash,
      env: { ...env, ...plan.env },
      ports,
      form,
      driver: this.driver(slot)
    })
    const { configHash, workers, headers, image } = plan
    return { spec, provider, modelId: this.modelId(name), configHash, workers, headers, image, rendered: renderedLaunch(plan) }
  }

  /** What this host gives the engine of a slot: nothing to one that runs elsewhere. */
  #access (
    slot: NamedSlotConfig, engine: Pick<EngineProvider, 'vulkanVariable'>, device: Device, form: EngineForm
  ): DeviceAccess {
    return this.isElsewhere(slot) ? NO_ACCESS : this.#deps.access(engine, device, slot.gpu_index, form)
  }

  #input ({ slot, provider, device, profile, model }: EffectiveSlot, ports: EnginePorts): LaunchInput {
    const { config, hardware, models } = this.#deps
    const form = this.form(slot)
    const chatTemplatePath = this.#models.chatTemplate(slot, model)
    const mmprojPath = projectorOf(slot, model)
    const roots = [...config.snapshot.svc.models.roots, models.store]
    let folders: readonly string[] | null = null
    return {
      slot,
      device,
      form,
      bindHost: form === 'container' ? '0.0.0.0' : config.snapshot.svc.slots.publish_host,
      port: ports.port,
      ports: allPorts(provider, ports),
      model: takesModel(provider) ? model : null,
      ...(provider.models === undefined
        ? {}
        : { engineModels: { id: this.#models.own(slot, provider), store: models.engineStore(provider) } }),
      profile,
      contextSize: this.contextSize({ slot, provider, model }),
      chatTemplatePath,
      mmprojPath,
      // asks the disk, which a list of many slots has no time for
      get modelRoots () { return folders ??= foldersOf([model?.path, mmprojPath, chatTemplatePath], roots) },
      hardware: hardware.info,
      stateDir: join(config.paths.state, 'slots', slot.name),
      engineKey: this.#deps.engineKey(slot.name)
    }
  }

  #mtp ({ slot, profile, model }: EffectiveSlot): boolean {
    return mtpEffective(slot, profile, model !== null && isMtpEligible(model))
  }
}
