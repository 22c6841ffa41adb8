import { atPort, deviceClassOf, type AgentCatalog, type ProviderCatalog } from './contract/index.js'
import { Connections, originOf } from './dispatch/call/connections.js'
import { readGpuMemory } from './hardware/gpu-memory.js'
import { readMemoryPools, type MemoryPool } from './hardware/memory-pools.js'
import type { KernelServices } from './kernel-services.js'
import { createRouting, type Routing } from './routing.js'
import { EngineMemory } from './runtime/engine-memory.js'
import { deviceAccess } from './runtime/device/device-access.js'
import { Daemons } from './runtime/programs/daemons.js'
import { claimPort } from './runtime/port-check.js'
import { resolveImage } from './runtime/image/image-manifest.js'
import { SlotGpuArbiter } from './slots/gpu/gpu-arbiter.js'
import { GpuStateFile } from './slots/gpu/gpu-arbiter-file.js'
import { checkModelFlags, checkProfileFlags, flagRules } from './slots/plan/argv/flag-texts.js'
import { imageProblem } from './slots/plan/slot-image.js'
import { gpuSlots } from './slots/gpu-slots.js'
import type { RuntimeChoice } from './slots/plan/slot-runtime.js'
import { assertNoRival, type RivalContext } from './slots/write/slot-rules.js'
import { isLive } from './slots/schedule/leases.js'
import { probeHealth, type HealthProbe } from './slots/life/watch/health.js'
import { EngineTaskRunner } from './slots/life/engine/engine-tasks.js'
import { ImagePulls } from './slots/life/image-pulls.js'
import { watchRelease } from './slots/gpu/memory-release.js'
import { PressureEviction } from './slots/pressure-eviction.js'
import { replicatedConfig, replicatedSnapshot } from './slots/replicas/replicated-slots.js'
import { ReplicaSets } from './slots/replicas/replica-sets.js'
import { ShadowSlots } from './slots/shadow-slots.js'
import { SlotFleet } from './slots/life/slot-fleet.js'
import { SlotManager } from './slots/slot-manager.js'
import { SlotPlans, type SlotPlansDeps } from './slots/plan/slot-plans.js'
import { SlotStateFiles } from './slots/life/kept/slot-state-file.js'
import { SlotWriter } from './slots/write/slot-writer.js'

/** Slots and dispatch, wired together. The order of `close` is the gateway's to keep. */
export interface Inference extends Omit<Routing, 'follow'> {
  readonly slots: SlotManager
  readonly plans: SlotPlans
  readonly fleet: SlotFleet
  readonly gpu: SlotGpuArbiter
  readonly pressure: PressureEviction
  readonly sets: ReplicaSets
  /** Drivers that slots ask for by name. */
  readonly drivers: () => ReadonlySet<string>
  /** Looks at providers anew: some came, or went. */
  readonly providersChanged: () => void
  readonly pulls: ImagePulls
  readonly tasks: EngineTaskRunner
  readonly daemons: Daemons
  readonly connections: Connections
  /** Takes the subscriptions back. */
  readonly unsubscribe: () => void
}

export interface InferenceOptions {
  readonly probe?: HealthProbe | undefined
  /** Replaces the look into /dev: device nodes of GPUs and NPUs. */
  readonly deviceNodes?: readonly string[] | undefined
  readonly readMemory?: (() => Promise<readonly MemoryPool[]>) | undefined
}

/** What plugins bring that inference looks things up in. */
interface Catalogs {
  readonly agents: AgentCatalog
  readonly providers: ProviderCatalog
}

export function createInference (
  kernel: KernelServices, { agents, providers }: Catalogs, { probe = probeHealth, deviceNodes, readMemory }: InferenceOptions = {}
): Inference {
  const { config, models, hardware, runtime, instance, clock, events, log, env } = kernel
  const connections = new Connections(clock, () => config.snapshot.svc.dispatcher.connect_timeout_s * 1000)
  const host: Pick<SlotPlansDeps, 'image' | 'access' | 'path'> = {
    path: env.PATH ?? '',
    image: name => resolveImage(name, config.snapshot.manifest, env),
    access: ({ vulkanVariable = null }, device, gpuIndex, form) =>
      deviceAccess({ device, gpuIndex, form, vulkanVariable, hardware: hardware.info }, deviceNodes)
  }
  kernel.rules.use({
    profile: (name, profile) => checkProfileFlags(name, profile, providers),
    row: (rows, name, row, slots) => rows.check?.(name, row, { slots, providers, flags: flagRules(providers) }),
    model: (id, row, before) => checkModelFlags(id, row, before, providers)
  })
  const choice: RuntimeChoice = {
    form: runtime.form,
    formOf: name => runtime.formOf(name),
    names: () => runtime.names(),
    isElsewhere: name => runtime.isElsewhere(name),
    optionsOf: name => runtime.optionsOf(name),
    settingsOf: (name, options) => runtime.settingsOf(name, options)
  }
  /** As those see it who run engines. */
  const engines = replicatedConfig(config)
  const plans = new SlotPlans({
    ...host, config: engines, models, providers, hardware, runtime: choice, instance, engineKey: kernel.engineKey
  })
  const writer = new SlotWriter({
    config,
    models,
    modelFiles: kernel.modelFiles,
    providers,
    events,
    gpus: () => hardware.info.gpus,
    runtime: choice,
    defaultDevice: slot => plans.device(slot),
    imageProblem: (name, draft) => runtime.form === 'process' ? null : imageProblem(plans.over(draft), name),
    owned: () => config.owned,
    troubles: (name, draft) => plans.over(draft).troubles(name)
  })
  const fleet: SlotFleet = new SlotFleet({
    config: engines,
    plans,
    models,
    runtime,
    clock,
    events,
    log,
    instance,
    probe,
    client: (address, provider) => slots.clientOf(address, provider),
    stateFiles: new SlotStateFiles(`${config.paths.state}/slots`, clock, log),
    assertMayRun: name => {
      gpu.assertAllows(name)
      const context: RivalContext = { providers, device: slot => plans.device(slot), gpus: hardware.info.gpus, runtime: choice }
      const all = [...engines.snapshot.slots.values()]
      const live = all.filter(slot => slot.name === name || isLive(fleet.core(slot.name)))
      assertNoRival(name, live, context)
    },
    ports: {
      customary: slot => providers.get(slot.provider)?.reservedPorts?.[0] ?? null,
      reserved: () => providers.list().flatMap(({ reservedPorts = [] }) => reservedPorts),
      claim: port => claimPort(config.snapshot.svc.slots.publish_host, port)
    },
    changed: name => {
      routing.catalog.invalidate()
      const engine = fleet.core(name)?.engine ?? null
      if (engine !== null) memory.notice(engine.id)
    },
    heldGone: () => gpu.follow(),
    engineGone: ({ address }) => {
      for (const port of [undefined, ...Object.keys(address.ports ?? {})]) connections.forget(originOf(atPort(address, port)))
    },
    watchRelease: async name => {
      const slot = engines.snapshot.slots.get(name)
      const usesGpu = slot !== undefined && !plans.isElsewhere(slot) && deviceClassOf(plans.device(slot)) === 'gpu'
      return usesGpu ? await watchRelease(readGpuMemory, clock) : () => Promise.resolve()
    }
  })
  const gpu: SlotGpuArbiter = new SlotGpuArbiter({
    config: engines,
    clock,
    events,
    log,
    file: new GpuStateFile(`${config.paths.state}/gpu_arbiter.json`, log),
    slots: gpuSlots(fleet, plans, address => slots.clientOf(address), name => sets.ofMember(name)?.turnAway()),
    gpus: () => hardware.info.gpus
  })
  const sets: ReplicaSets = new ReplicaSets({ config, fleet, gate: gpu, clock, events, log })
  const pressure = new PressureEviction({
    config: engines,
    plans,
    fleet,
    hardware,
    clock,
    events,
    log,
    mustStay: name => sets.ofMember(name)?.isScarce() === true,
    readPools: readMemory ?? (() => readMemoryPools(clock))
  })
  const pulls = new ImagePulls(name => runtime.images(plans.driver(plans.slot(name))), events, () => fleet.surroundingsChanged())
  const tasks = new EngineTaskRunner({ ...host, config, plans, runtime, instance, events, log })
  const daemons = new Daemons({ runtime, instance, clock, events, log, clean: text => config.withoutSecrets(text) })
  const memory = new EngineMemory({
    runtime, clock, running: () => [...engines.snapshot.slots.keys()].flatMap(name => fleet.core(name)?.engine?.id ?? [])
  })
  const shadows = new ShadowSlots({ config, providers, fleet })
  const slots: SlotManager = new SlotManager({
    config,
    plans,
    runtime,
    clock,
    log,
    instance,
    fleet,
    shadows,
    sets,
    gate: gpu,
    writer,
    pulls,
    memory,
    connections: { to: origin => connections.to(origin), originOf }
  })
  const routing: Routing = createRouting(kernel, agents, slots, connections)
  const subscriptions = [
    config.onChange((next, previous) => {
      if (next.svc.dispatcher.connect_timeout_s !== previous.svc.dispatcher.connect_timeout_s) connections.renew()
      fleet.follow(replicatedSnapshot(next), replicatedSnapshot(previous))
      sets.follow()
      gpu.follow()
      routing.follow(next, previous)
    }),
    () => memory.close(),
    models.onChange(() => {
      fleet.surroundingsChanged()
      routing.catalog.invalidate()
    })
  ]
  return {
    ...routing,
    slots,
    plans,
    fleet,
    gpu,
    pressure,
    sets,
    drivers: () => new Set([...config.snapshot.slots.values()].flatMap(slot => plans.driver(slot) ?? [])),
    providersChanged: () => {
      fleet.providersChanged()
      shadows.forget()
      routing.catalog.invalidate()
    },
    pulls,
    tasks,
    daemons,
    connections,
    unsubscribe: () => { for (const take of subscriptions) take() }
  }
}
