import { randomBytes } from 'node:crypto'
import {
  messageOf, redactLine, svcError, type ConfigService, type EngineProvider, type EngineTask, type EngineTaskOptions,
  type EngineTasks, type EventBus, type Logger, type NamedSlotConfig
} from '../../../contract/index.js'
import { LABEL_INSTANCE, LABEL_TASK, type ContainerRuntime, type EngineForm, type EngineSpec } from '../../../contract/provider/engine-runtime.js'
import { imagesOf } from '../../../runtime/runtime-set.js'
import type { ResolvedImage } from '../../../runtime/image/image-manifest.js'
import { abortable } from '../../../async/waiting.js'
import { chooseCandidate } from '../../plan/launch/process-candidates.js'
import type { SlotPlans, SlotPlansDeps } from '../../plan/slot-plans.js'

export interface EngineTaskDeps extends Pick<SlotPlansDeps, 'image' | 'access' | 'path'> {
  readonly config: ConfigService
  readonly plans: Pick<SlotPlans, 'driver' | 'form' | 'image'>
  readonly runtime: ContainerRuntime
  readonly instance: string
  readonly events: EventBus
  readonly log: Logger
}

interface Prepared {
  readonly spec: EngineSpec
  readonly image: ResolvedImage | null
}

/** A task ends with its download half done and goes on from there: it needs no long farewell. */
const STOP_S = 5
/** More than it can have written before there is a listener. */
const FIRST_LINES = 1_000

/** Runs programs of engines over the runtime of the slots. Keeps nothing; every call cleans up after itself. */
export class EngineTaskRunner implements EngineTasks {
  readonly #deps: EngineTaskDeps

  constructor (deps: EngineTaskDeps) {
    this.#deps = deps
  }

  async check (task: EngineTask): Promise<void> {
    await this.#prepare(task)
  }

  async run (task: EngineTask, options: EngineTaskOptions): Promise<number | null> {
    const { signal } = options
    const { spec, image } = await this.#prepare(task)
    signal.throwIfAborted()
    if (image !== null) await this.#fetchImage(task, image, spec.runtime ?? null, options)
    return await this.#attend(spec, options)
  }

  async #attend (spec: EngineSpec, { signal, onLine }: EngineTaskOptions): Promise<number | null> {
    const { runtime, instance, config } = this.#deps
    let id: string | null = null
    let tell = (_code: number | null): void => {}
    const ended = new Promise<number | null>(resolve => { tell = resolve })
    const unwatch = runtime.onExit(instance, exit => { if (exit.id === id) tell(exit.exitCode) })
    try {
      id = await runtime.create(spec, signal)
      await runtime.start(id, signal)
      for await (const line of runtime.logs(id, { tail: FIRST_LINES, follow: true, signal })) {
        onLine(redactLine(config.withoutSecrets(line)))
      }
      signal.throwIfAborted()
      const found = await runtime.inspect(id)
      return found?.state === 'running' ? await abortable(ended, signal) : found?.exitCode ?? null
    } finally {
      unwatch()
      await this.#clear(id, spec)
    }
  }

  /** Also what a `create` that was cut off left without telling its id: only it can carry these labels. */
  async #clear (id: string | null, { name, labels }: EngineSpec): Promise<void> {
    const { runtime, log } = this.#deps
    try {
      const ids = id === null ? (await runtime.list(labels)).filter(found => found.name === name).map(found => found.id) : [id]
      for (const each of ids) {
        await runtime.stop(each, STOP_S)
        await runtime.remove(each)
      }
    } catch (error) {
      log.error({ engine: id, name, err: error }, `a program of an engine could not be removed; the next start of the gateway tries again: ${messageOf(error)}`)
    }
  }

  async #fetchImage (
    { purpose }: EngineTask, { ref, digest, warning }: ResolvedImage, runtime: string | null,
    { signal, onMessage }: EngineTaskOptions
  ): Promise<void> {
    const { events } = this.#deps
    const images = imagesOf(this.#deps.runtime, runtime)
    if (warning !== null) {
      events.emit({ type: 'task.image', severity: 'warn', source: `task:${purpose}`, message: warning, data: { image: ref } })
    }
    if (await images.imagePresent(ref, digest, signal)) return
    onMessage?.(`pulling ${ref}`)
    await images.pull(ref, digest, ({ layer, totalLayers }) => onMessage?.(`pulling ${ref}: ${layer} of ${totalLayers} layers`), signal)
    onMessage?.('')
  }

  async #prepare ({ purpose, provider, container, processes }: EngineTask): Promise<Prepared> {
    const { instance, path, config } = this.#deps
    const [form, driver] = this.#formOf(provider)
    const access = this.#deps.access(provider, provider.devices[0]!, null, form)
    const common = {
      name: `svc-${instance.slice(0, 8)}-${purpose}-${randomBytes(3).toString('hex')}`,
      labels: { [LABEL_INSTANCE]: instance, [LABEL_TASK]: purpose },
      port: null,
      ...(driver === null ? {} : { runtime: driver })
    }
    if (form === 'process') {
      const { form: program, env } = await chooseCandidate(`${provider.title}'s ${purpose}`, provider, processes, path, config.snapshot.svc.slots.publish_host)
      return { spec: { ...common, env: { ...env, ...access.env }, form: program }, image: null }
    }
    const image = container.image === undefined ? this.#imageOf(provider) : { ref: container.image, digest: null, warning: null }
    return {
      image,
      spec: {
        ...common,
        env: { ...container.env, ...access.env },
        form: {
          kind: 'container',
          image: image.ref,
          digest: image.digest,
          entrypoint: container.entrypoint ?? null,
          command: container.command,
          mounts: container.mounts ?? [],
          devices: [...access.devices, ...container.devices ?? []],
          cdiDevices: access.cdiDevices,
          groups: access.groups,
          network: container.network ?? 'bridge',
          publishHost: null,
          ipc: container.ipc ?? 'private',
          shmSizeBytes: container.shmSizeBytes ?? null,
          ulimits: container.ulimits ?? {},
          securityOpts: access.securityOpts,
          workingDir: container.workingDir ?? null
        }
      }
    }
  }

  /** As the first slot with this engine runs, else as such a slot would. */
  #formOf (provider: EngineProvider): [EngineForm, string | null] {
    const slot = this.#slotOf(provider) ?? { provider: provider.name, runtime: null }
    return [this.#deps.plans.form(slot), this.#deps.plans.driver(slot)]
  }

  #slotOf (provider: EngineProvider): NamedSlotConfig | undefined {
    const slots = [...this.#deps.config.snapshot.slots.values()]
    return slots.find(({ provider: name, served_by: anchor }) => name === provider.name && anchor === null)
  }

  /** That of the first slot with this engine, else what such a slot would get. */
  #imageOf (provider: EngineProvider): ResolvedImage {
    const { config, plans } = this.#deps
    const slot = this.#slotOf(provider)
    const own = slot === undefined ? null : plans.image(slot.name)
    if (own !== null) return own
    const profile = config.snapshot.profiles.get(provider.defaultProfile?.(provider.devices[0]!, provider.slotTypes[0]!) ?? '')
    const wanted = profile?.image ?? (typeof provider.image === 'string' ? provider.image : undefined)
    if (wanted !== undefined) return this.#deps.image(wanted)
    throw svcError('slot.config_error', `no image is known for ${provider.title}: give a slot of it a profile or an \`image\``,
      { details: { provider: provider.name } })
  }
}
