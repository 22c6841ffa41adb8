import { deviceClassOf, shareGpu, slotImageSchema, type Device, type GpuClaim, type GpuInfo, type NamedSlotConfig } from '../../contract/index.js'

/** A slot and the device it would run on. */
export interface PlacedSlot {
  readonly slot: NamedSlotConfig
  readonly device: Device
}

export type GpuSide = 'llm' | 'img'

/** Who shares a GPU with an image engine. Derived from the configuration, never declared. */
export interface GpuGroups {
  /** Image slots on a GPU, the default one first. */
  readonly img: readonly NamedSlotConfig[]
  /** Every other slot on a GPU that one of those uses too. */
  readonly llm: readonly NamedSlotConfig[]
}

/** Pure. Without an image slot on a GPU there is nothing to share: both are empty. */
export function gpuGroups (placed: readonly PlacedSlot[], gpus: readonly GpuInfo[]): GpuGroups {
  const onGpu = placed.filter(({ device }) => deviceClassOf(device) === 'gpu')
  const img = onGpu.filter(({ slot }) => slot.type === 'image')
  const llm = onGpu.filter(one => one.slot.type !== 'image' && img.some(other => shareGpu(claimOf(one), claimOf(other), gpus)))
  return {
    img: img.map(({ slot }) => slot).sort((a, b) => Number(b.default) - Number(a.default)),
    llm: llm.map(({ slot }) => slot)
  }
}

/** Those that image mode can be for. */
export function enabledImageSlots ({ img }: GpuGroups): readonly NamedSlotConfig[] {
  return img.filter(slot => slot.enabled)
}

export function sideOf (groups: GpuGroups, name: string): GpuSide | null {
  if (groups.img.some(slot => slot.name === name)) return 'img'
  return groups.llm.some(slot => slot.name === name) ? 'llm' : null
}

/** Longest of what the image slots ask for; one that says never (0) decides. Minutes. */
export function idleRestoreMinutes (groups: GpuGroups): number {
  const minutes = enabledImageSlots(groups).map(slot => (slot.image ?? defaults).idle_restore_minutes)
  return minutes.includes(0) ? 0 : Math.max(0, ...minutes)
}

const defaults = slotImageSchema.parse({})

function claimOf ({ slot, device }: PlacedSlot): GpuClaim {
  return { device, gpuIndex: slot.gpu_index }
}
