import type { HardwareInfo, SlotState, SlotStatus } from 'svc-gateway/plugin'
import type { Occupancy } from './schemas.js'

export interface NpuSlot {
  readonly status: SlotStatus
  /** Slot whose engine serves it; null for one with its own. */
  readonly anchor: string | null
}

/** XDNA 2, which is what NPU engines run on. */
const GEOMETRY = { rows: 4, cols: 8, tops: 50 }

const shown: Readonly<Record<SlotState, Occupancy['slots'][number]['state']>> = {
  offline: 'offline',
  pulling: 'offline',
  starting: 'offline',
  warming: 'loaded',
  ready: 'ready',
  serving: 'serving',
  idle: 'idle',
  unloading: 'loaded',
  error: 'offline'
}

/**
 * Who holds the columns of the NPU. An engine takes all there are: the NPU has one at a time. Pure.
 * @param sizes bytes of models, by id
 */
export function occupancy (
  { npu }: HardwareInfo, slots: readonly NpuSlot[], sizes: ReadonlyMap<string, number>
): Occupancy {
  const cols = npu.aie_columns ?? GEOMETRY.cols
  const total = npu.present ? cols : 0
  const rows = slots.map(({ status: { name, modelId, state }, anchor }) => {
    const isHeld = shown[state] !== 'offline'
    const bytes = isHeld && modelId !== null ? sizes.get(modelId) ?? 0 : 0
    return { name, anchor, model: modelId, state: shown[state], cols: isHeld ? total : 0, gb: Math.round(bytes / 1e7) / 100 }
  })
  const used = rows.some(({ anchor, state }) => anchor === null && state !== 'offline') ? total : 0
  return {
    present: npu.present,
    rows: GEOMETRY.rows,
    cols,
    tiles: GEOMETRY.rows * cols,
    tops_peak: cols === GEOMETRY.cols ? GEOMETRY.tops : null,
    cols_total: total,
    cols_used: used,
    columns_available: total - used,
    serving: rows.some(({ state }) => state === 'serving'),
    single_tenant: true,
    slots: rows.map(({ anchor: _, ...row }) => row)
  }
}
