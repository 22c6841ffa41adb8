import {
  slotStates, type CircuitView, type GpuReading, type HardwareReading, type SlotMetrics, type SlotStatus
} from 'svc-gateway/plugin'

export interface MetricFacts {
  readonly version: string
  readonly slots: ReadonlyArray<{ readonly status: SlotStatus, readonly counters: SlotMetrics }>
  readonly upstreams: ReadonlyArray<{
    readonly name: string
    readonly circuit: CircuitView
    /** Null before its first request. */
    readonly counters: SlotMetrics | null
  }>
  readonly requestsInFlight: number
  readonly reading: HardwareReading
}

type Labels = Readonly<Record<string, string>>
type Sample = readonly [labels: Labels, value: number | null]

const MIB = 1024 * 1024
const UP: ReadonlySet<string> = new Set(['ready', 'serving', 'idle'])

/** The numbers of the gateway in the text format of Prometheus. What is unknown is left out. Pure. */
export function metricsText ({ version, slots, upstreams, requestsInFlight, reading }: MetricFacts): string {
  const ofSlots = (value: (slot: MetricFacts['slots'][number]) => number): Sample[] =>
    slots.map(slot => [{ slot: slot.status.name }, value(slot)])
  const ofUpstreams = (value: (upstream: MetricFacts['upstreams'][number]) => number | null): Sample[] =>
    upstreams.map(upstream => [{ upstream: upstream.name }, value(upstream)])
  const ofGpus = (value: (gpu: GpuReading) => number | null): Sample[] =>
    reading.gpus.map(gpu => [{ gpu: gpu.pci_id, name: gpu.name }, value(gpu)])
  const isUp = ({ status }: MetricFacts['slots'][number]): number => UP.has(status.state) ? 1 : 0
  return [
    family('svc_info', 'gauge', 'Release of the gateway', [[{ version }, 1]]),
    family('svc_slot_up', 'gauge', 'Whether the slot takes requests', ofSlots(isUp)),
    family('svc_slot_state', 'gauge', '1 for the state the slot is in', slots.flatMap(({ status }) =>
      slotStates.map((state): Sample => [{ slot: status.name, state }, status.state === state ? 1 : 0]))),
    family('svc_slots_ready_total', 'gauge', 'Slots that take requests', [[{}, slots.reduce((sum, slot) => sum + isUp(slot), 0)]]),
    family('svc_slot_requests_total', 'counter', 'Requests sent to the engine', ofSlots(slot => slot.counters.requestCount)),
    family('svc_slot_tokens_total', 'counter', 'Tokens generated', ofSlots(slot => slot.counters.tokenCount)),
    family('svc_slot_requests_in_flight', 'gauge', 'Requests that the engine works on', ofSlots(slot => slot.status.inFlight)),
    family('svc_slot_requests_waiting', 'gauge', 'Requests that wait for the slot', ofSlots(slot => slot.status.waiting)),
    family('svc_upstream_up', 'gauge', '0 while the upstream is not used after failures',
      ofUpstreams(({ circuit }) => circuit.state === 'open' ? 0 : 1)),
    family('svc_upstream_requests_total', 'counter', 'Requests sent to the upstream', ofUpstreams(({ counters }) => counters?.requestCount ?? 0)),
    family('svc_upstream_tokens_total', 'counter', 'Tokens generated', ofUpstreams(({ counters }) => counters?.tokenCount ?? 0)),
    family('svc_requests_in_flight', 'gauge', 'Requests of clients that are not answered in full', [[{}, requestsInFlight]]),
    family('svc_host_cpu_utilization_ratio', 'gauge', 'Share of all processors in use', [[{}, reading.cpu_util]]),
    family('svc_host_memory_total_bytes', 'gauge', 'Memory of the host', [[{}, bytes(reading.ram_total_mb)]]),
    family('svc_host_memory_available_bytes', 'gauge', 'Memory available to programs', [[{}, bytes(reading.ram_available_mb)]]),
    family('svc_gpu_utilization_ratio', 'gauge', 'Load of the GPU', ofGpus(gpu => gpu.util)),
    family('svc_gpu_vram_used_bytes', 'gauge', 'Video memory in use', ofGpus(gpu => bytes(gpu.vram_used_mb))),
    family('svc_gpu_vram_total_bytes', 'gauge', 'Video memory', ofGpus(gpu => bytes(gpu.vram_total_mb))),
    family('svc_gpu_gtt_used_bytes', 'gauge', 'Host memory mapped for the GPU', ofGpus(gpu => bytes(gpu.gtt_used_mb))),
    family('svc_gpu_temperature_celsius', 'gauge', 'Temperature of the GPU', ofGpus(gpu => gpu.temp_c)),
    family('svc_gpu_power_watts', 'gauge', 'Power that the GPU draws', ofGpus(gpu => gpu.power_w))
  ].join('')
}

/** Empty without a sample that is known. */
function family (name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): string {
  const lines = samples.flatMap(([labels, value]) => value === null ? [] : [`${name}${labelText(labels)} ${value}\n`])
  return lines.length === 0 ? '' : `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function labelText (labels: Labels): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped (text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function bytes (mib: number | null): number | null {
  return mib === null ? null : mib * MIB
}
