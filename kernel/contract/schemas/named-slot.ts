import type { SlotConfig } from './slot-config.js'

/** A slot as its file has it. */
export interface WrittenSlot extends SlotConfig { readonly name: string }

/** A slot with its engine provider resolved: by its own name, and the default one where the file names none. */
export interface NamedSlotConfig extends WrittenSlot { readonly provider: string }
