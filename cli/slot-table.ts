import type { Colour, Output } from './output.js'
import { isServing, modelOf, type SlotRecord } from './slot-record.js'
import type { Column } from './table.js'

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
      cell: ({ state, enabled }) => enabled ? state : `${state} (disabled)`,
      paint: (text, { state }) => out.paint(stateColour(state), text)
    },
    model: { title: 'MODEL', cell: record => modelOf(record) || '-', flexible: true },
    port: { title: 'PORT', cell: ({ port }) => port == null ? '-' : String(port) },
    type: { title: 'TYPE', cell: ({ type, kind }) => type ?? kind ?? '-', expendable: 1 },
    device: { title: 'DEVICE', cell: ({ device, backend }) => device ?? backend ?? '-', expendable: 2 },
    provider: { title: 'PROVIDER', cell: ({ provider }) => provider ?? '-', expendable: 3 }
  }
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

/** What is wrong with a slot, if anything, one sentence a line. */
export function slotProblems ({ name, metadata, config_drift: drift }: SlotRecord): string[] {
  const { failure, config_error: configError, file_problems: problems } = metadata
  return [
    ...(failure === undefined ? [] : [`${failure.message} (${failure.code})`]),
    ...(configError === undefined ? [] : [configError]),
    ...problems.map(({ path, message }) => `slots/${name}.toml: ${path === '' ? '' : `${path} `}${message}`),
    ...(drift ? [`the engine runs on an older configuration; \`svc slot restart ${name}\` takes the present one`] : [])
  ]
}

/** `2 ready, 1 offline`. */
export function countStates (records: readonly SlotRecord[]): string {
  const up = records.filter(isServing).length
  const failed = records.filter(({ state }) => state === 'error').length
  const parts = [`${records.length}`, `${up} ready`, ...(failed === 0 ? [] : [`${failed} in error`])]
  return parts.join(', ')
}
