import type { Colour, Output } from '../terminal/output.js'
import { isServing, modelOf, type SlotRecord } from './slot-record.js'
import type { Column } from '../terminal/table.js'
import { problemText } from '../../kernel/contract/text/problem-text.js'

export function stateColour (state: string): Colour {
  if (state === 'error') return 'red'
  if (state === 'ready' || state === 'serving' || state === 'idle') return 'green'
  return state === 'offline' ? 'dim' : 'yellow'
}

/** Every column of the list; the short table takes the first few. */
function columnsOf (out: Output): Record<'name' | 'state' | 'model' | 'port' | 'type' | 'device' | 'provider', Column<SlotRecord>> {
  return {
    name: { title: 'NAME', cell: ({ name }) => name },
    state: {
      title: 'STATE',
      cell: stateText,
      paint: (text, { state, metadata }) =>
        out.paint(metadata.pull_failed === undefined && !metadata.provider_gone ? stateColour(state) : 'red', text)
    },
    model: { title: 'MODEL', cell: record => modelOf(record) || '-', flexible: true },
    port: { title: 'PORT', cell: ({ port }) => port == null ? '-' : String(port) },
    type: { title: 'TYPE', cell: ({ type, kind }) => type ?? kind ?? '-', expendable: 1 },
    device: { title: 'DEVICE', cell: ({ device, backend }) => device ?? backend ?? '-', expendable: 2 },
    provider: { title: 'PROVIDER', cell: ({ provider }) => provider ?? '-', expendable: 3 }
  }
}

/** A slot whose model is on its way is not just off, and one whose engine no plugin provides takes no request. */
function stateText ({ state, enabled, metadata, replicas, replicas_ready: ready }: SlotRecord): string {
  if (metadata.provider_gone) return `${state} (no provider)`
  if (metadata.pull_failed !== undefined) return `${state} (pull failed)`
  if (metadata.pending_model !== undefined) return `${state} (waits for its model)`
  if (enabled && replicas.length > 0) return `${state} (${ready}/${replicas.length} ready)`
  return enabled ? state : `${state} (disabled)`
}

export function printSlots (out: Output, records: readonly SlotRecord[]): void {
  const { name, state, model, port, type, device, provider } = columnsOf(out)
  out.table([name, type, state, device, provider, model, port], records)
}

/** The table of `svc status`. */
export function printSlotSummary (out: Output, records: readonly SlotRecord[]): void {
  const { name, state, model, port } = columnsOf(out)
  out.table([name, state, model, port], records)
}

/** Slots of other gateways; their names are what a request asks for. */
export function printRemoteSlots (out: Output, records: readonly SlotRecord[]): void {
  const { name, state, model, type } = columnsOf(out)
  out.table([name, type, state, model], records)
}

/** What keeps the gateway from reading a slot's file, if anything does. */
export function unreadProblems ({ name, kind, metadata }: Pick<SlotRecord, 'name' | 'kind' | 'metadata'>): string[] {
  return kind === 'unread' ? [metadata.message, ...fileProblems({ name, metadata })] : []
}

function fileProblems ({ name, metadata }: Pick<SlotRecord, 'name' | 'metadata'>): string[] {
  return metadata.file_problems.map(({ path, message }) => `slots/${name}.toml: ${problemText(path, message)}`)
}

/** Why a slot takes no requests although its engine may run, if so. */
export function providerProblems ({ name, provider, metadata }: Pick<SlotRecord, 'name' | 'provider' | 'metadata'>): string[] {
  return metadata.provider_gone
    ? [`no active plugin provides its engine '${provider ?? ''}', so requests are refused: add the plugin again, or pick another with \`svc slot edit ${name} --provider <provider>\``]
    : []
}

/** Why the slots of a gateway are not shown, if so. */
export function remoteProblems ({ remote_error: why }: Pick<SlotRecord, 'remote_error'>): string[] {
  return why == null ? [] : [`its slots cannot be shown: ${why}`]
}

/** What is wrong with a slot, if anything, one sentence a line. */
export function slotProblems ({ name, kind, provider, metadata, config_drift: drift }: SlotRecord): string[] {
  const { failure, config_error: configError } = metadata
  if (kind === 'unread') return [metadata.message]
  return [
    ...providerProblems({ name, provider, metadata }),
    ...pullProblems({ metadata }),
    ...(failure === undefined ? [] : [`${failure.message} (${failure.code})`]),
    ...(configError === undefined || configError === failure?.message ? [] : [configError]),
    ...fileProblems({ name, metadata }),
    ...(drift ? [`the engine runs with an older configuration; \`svc slot restart ${name}\` applies the current one`] : [])
  ]
}

/** What the answer to a write has to say about what was written, one sentence a line. */
export function writeWarnings ({ fit_warning: fit, findings }: SlotRecord): string[] {
  return [
    ...findings.map(({ path, message }) => path === '' ? message : `${path}: ${message}`),
    ...(fit == null || fit === '' ? [] : [fit])
  ]
}

/** Why the model that a slot waits for is not there, if so. */
export function pullProblems ({ metadata }: Pick<SlotRecord, 'metadata'>): string[] {
  const { pending_model: model, pull_failed: why } = metadata
  return why === undefined ? [] : [`its model was not downloaded: ${why}${model === undefined ? '' : `; \`svc model pull ${model}\` tries again`}`]
}

/** `2 ready, 1 offline`. */
export function countStates (records: readonly SlotRecord[]): string {
  const up = records.filter(record => isServing(record) && !record.metadata.provider_gone).length
  const failed = records.filter(({ state }) => state === 'error').length
  const parts = [`${records.length}`, `${up} ready`, ...(failed === 0 ? [] : [`${failed} in error`])]
  return parts.join(', ')
}
