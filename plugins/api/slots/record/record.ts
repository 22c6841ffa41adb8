import {
  deviceBackends, deviceClassOf, slotRoleOf, type Device, type Diagnostic, type EngineProvider, type NamedSlotConfig,
  type PullState, type SlotMetrics, type SlotOutlook, type SlotState, type SlotStatus
} from 'svc-gateway/plugin'
import { isImage } from './image-name.js'
import type { SlotRecord } from './record-schema.js'

/** The slot whose process serves another one. */
export interface AnchorFacts {
  readonly config: NamedSlotConfig
  readonly state: SlotState
  readonly provider: EngineProvider | null
}

/** Everything a record is made of, read at one moment. */
export interface SlotFacts {
  readonly config: NamedSlotConfig
  readonly status: SlotStatus
  readonly device: Device
  readonly provider: EngineProvider | null
  /** Null when the slot cannot be launched; `problem` says why. */
  readonly outlook: SlotOutlook | null
  readonly problem: string | null
  readonly argv: readonly string[] | null
  readonly metrics: SlotMetrics
  readonly runtime: 'container' | 'process'
  /** Null when the container engine did not say in time. */
  readonly imageState: PullState | null
  /** MiB; null if unknown cheaply. */
  readonly memMb: number | null
  readonly anchor: AnchorFacts | null
  /** Problems of the slot's file. */
  readonly diagnostics: readonly Diagnostic[]
}

/** The record of `GET /api/slots` and `/api/slots/{name}`. Pure. */
export function slotRecord (facts: SlotFacts): SlotRecord {
  const { config, status, device, outlook } = facts
  const models = servedModels(facts)
  const mem = isUp(status.state) ? facts.memMb : 0
  return {
    name: config.name,
    kind: 'local',
    type: config.type,
    state: status.state,
    status: status.state === 'serving' && models.length === 0 && facts.provider?.needsModel === true ? 'idle' : status.state,
    enabled: config.enabled,
    default: config.default,
    pinned: config.pinned,
    role: slotRoleOf(config),
    port: status.port,
    ...(Object.keys(status.ports).length === 0 ? {} : { ports: status.ports }),
    device,
    backend: deviceBackends[device],
    declared_backend: config.device === undefined ? null : deviceBackends[config.device],
    device_class: config.type === 'image' ? 'img' : deviceClassOf(device),
    provider: config.provider,
    model_id: status.modelId,
    models,
    ...(config.model.default === null ? {} : { model_default: config.model.default }),
    ...(config.model.labels.length === 0 ? {} : { labels: config.model.labels }),
    ...(outlook?.contextSize == null ? {} : { ctx_max: outlook.contextSize }),
    chat_template: config.chat_template,
    n_gpu_layers: config.model.n_gpu_layers,
    rope_freq_base: config.model.rope_freq_base,
    idle_timeout_s: config.idle_timeout_s,
    workers: config.workers,
    ...replicasOf(status),
    llamacpp_args: config.server.extra_args.length === 0 ? null : config.server.extra_args,
    enable_thinking: config.enable_thinking,
    mtp: config.mtp,
    vision: outlook?.vision === true,
    ...(config.npu === undefined ? {} : { npu: config.npu }),
    ...companyOf(facts),
    container_status: status.held ? 'running' : containerStatus[status.state],
    container_health: status.healthOk === true,
    runtime: facts.runtime,
    profile: outlook === null ? config.profile : outlook.profile,
    ...imageOf(facts),
    ...(mem === null ? {} : { mem_mb: mem }),
    metrics: {
      toks: facts.metrics.tokensPerSec,
      ttft: facts.metrics.ttftMs === null ? null : Math.round(facts.metrics.ttftMs),
      ctx: outlook?.contextSize ?? null,
      kv: null,
      mem
    },
    metadata: metadataOf(facts),
    last_used_at: seconds(status.lastUsedAt)
  }
}

function replicasOf ({ replicas }: SlotStatus): Pick<SlotRecord, 'replicas' | 'replicas_ready'> {
  if (replicas === undefined) return {}
  return {
    replicas: replicas.map(({ index, state, since, port, engineName, inFlight, error }) =>
      ({ index, state, since: since / 1000, port, engine: engineName, in_flight: inFlight, error })),
    replicas_ready: replicas.filter(({ state }) => isUp(state)).length
  }
}

/** Whether an engine of the slot takes requests. */
export function isUp (state: SlotState): boolean {
  return state === 'ready' || state === 'serving' || state === 'idle'
}

export function seconds (ms: number | null): number | null {
  return ms === null ? null : ms / 1000
}

const containerStatus: Readonly<Record<SlotState, SlotRecord['container_status']>> = {
  offline: 'stopped',
  pulling: 'starting',
  starting: 'starting',
  warming: 'running',
  ready: 'running',
  serving: 'running',
  idle: 'running',
  unloading: 'running',
  error: 'crashed'
}

const imageStatus: Readonly<Record<PullState, NonNullable<SlotRecord['image_status']>>> = {
  present: 'present', completed: 'present', pulling: 'pulling', missing: 'missing', failed: 'missing', cancelled: 'missing'
}

function servedModels ({ config, status, provider }: SlotFacts): string[] {
  if (!isUp(status.state)) return []
  const children = provider?.children?.filter(child => child.active(config)).map(child => child.model) ?? []
  return [...(status.modelId === null ? [] : [status.modelId]), ...children]
}

/** Slots that share one process: the anchor of a trio and those it serves. */
function companyOf ({ config, status, provider, anchor }: SlotFacts): Partial<SlotRecord> {
  if (config.served_by === null) {
    const shares = isUp(status.state) && provider?.children?.some(child => child.active(config)) === true
    return shares ? { coresident_group: `${provider.name}-trio` } : {}
  }
  const child = anchor?.provider?.children?.find(candidate => candidate.type === config.type)
  return {
    served_by: config.served_by,
    npu_modality_active: anchor !== null && child?.active(anchor.config) === true,
    ...(anchor?.provider != null && isUp(anchor.state) ? { coresident_group: `${anchor.provider.name}-trio` } : {})
  }
}

type ImagePart = Pick<SlotRecord, 'image' | 'image_status' | 'actual_image' | 'image_mismatch' | 'resolved_command'>

function imageOf ({ outlook, status, argv, runtime, imageState }: SlotFacts): ImagePart {
  const image = outlook?.image ?? null
  const known = status.state === 'pulling' ? 'pulling' : imageState === null ? null : imageStatus[imageState]
  return {
    image,
    ...(image === null ? { image_status: 'not-configured' as const } : known === null ? {} : { image_status: known }),
    ...(runtime === 'process' || status.engineLabel === null
      ? {}
      : { actual_image: status.engineLabel, image_mismatch: image === null || !isImage(status.engineLabel, image) }),
    resolved_command: image === null || argv === null ? null : [image, ...argv]
  }
}

function metadataOf ({ config, status, device, problem, diagnostics, provider, anchor }: SlotFacts): SlotRecord['metadata'] {
  const { failure } = status
  const isProvided = (config.served_by === null ? provider : anchor?.provider ?? null) !== null
  return {
    updated_at: status.since / 1000,
    message: status.message,
    backend: deviceBackends[device],
    provider: config.provider,
    adopted: status.adopted,
    health_ok: status.healthOk,
    engine: status.engineLabel,
    generation: status.generation,
    in_flight: status.inFlight,
    waiting: status.waiting,
    started_at: seconds(status.startedAt),
    progress: status.progress,
    ...(failure === null
      ? {}
      : {
          failure: {
            code: failure.code,
            message: failure.message,
            attempts: failure.attempts,
            kind: failure.kind,
            retry_at: failure.retryAt / 1000,
            log_tail: [...failure.logTail]
          }
        }),
    ...(problem === null ? {} : { config_error: problem }),
    ...(isProvided ? {} : { provider_gone: true }),
    ...(config.meta?.pending_model == null ? {} : { pending_model: config.meta.pending_model }),
    ...(config.meta?.pull_failed == null ? {} : { pull_failed: config.meta.pull_failed }),
    ...(diagnostics.length === 0
      ? {}
      : { file_problems: diagnostics.map(problemOf) })
  }
}

/** One problem of a slot's file. Pure. */
export function problemOf ({ path, message, line }: Diagnostic): NonNullable<SlotRecord['metadata']['file_problems']>[number] {
  return { path, message, ...(line === undefined ? {} : { line }) }
}
