import { readdir, readFile } from 'node:fs/promises'
import { freemem, totalmem } from 'node:os'
import { basename, join } from 'node:path'
import type { GpuInfo } from 'svc-gateway/plugin'
import type { Memory } from './schemas.js'

export interface Gauges {
  readonly memory: Memory | null
  /** Percent. */
  readonly util: number | null
  /** Degrees Celsius. */
  readonly temp: number | null
  /** GHz. */
  readonly clock: number | null
}

const GIB = 1024 ** 3
/** Of the GTT pool: 50 of 80 GB on the machine that it was set for. */
const PRESSURE = 5 / 8
const nothing: Gauges = { memory: null, util: null, temp: null, clock: null }

/** What amdgpu's files say of a GPU now; other drivers have none of them. */
export async function readGauges (gpu: GpuInfo | undefined, sys = '/sys'): Promise<Gauges> {
  if (gpu === undefined || gpu.drm_path === '') return nothing
  const device = join(sys, 'class/drm', basename(gpu.drm_path), 'device')
  const number = async (file: string): Promise<number | null> => {
    const text = (await readFile(join(device, file), 'utf8').catch(() => '')).trim()
    return /^-?\d+$/.test(text) ? Number(text) : null
  }
  const [sensors] = await readdir(join(device, 'hwmon')).catch(() => [])
  const sensor = (file: string): Promise<number | null> => sensors === undefined ? Promise.resolve(null) : number(join('hwmon', sensors, file))
  const [used, total, util, milliCelsius, hertz] = await Promise.all([
    number('mem_info_gtt_used'), number('mem_info_gtt_total'), number('gpu_busy_percent'), sensor('temp1_input'), sensor('freq1_input')
  ])
  return {
    memory: used === null || total === null ? null : memoryOf(used, total),
    util,
    temp: milliCelsius === null ? null : milliCelsius / 1000,
    clock: hertz === null ? null : rounded(hertz / 1e9)
  }
}

function memoryOf (used: number, total: number): Memory {
  return {
    gtt_used_gb: rounded(used / GIB),
    gtt_ceil_gb: rounded(total / GIB),
    ram_used_gb: rounded((totalmem() - freemem()) / GIB),
    ram_ceil_gb: rounded(totalmem() / GIB),
    pressure: total > 0 && used / total >= PRESSURE
  }
}

function rounded (value: number): number {
  return Math.round(value * 100) / 100
}
