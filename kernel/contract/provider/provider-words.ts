import type { Device } from '../schemas/enums.js'

/** Words in files that only providers have, as those that are up say them. */
export interface ProviderWords {
  /** A provider's own name, for whatever name a file has for it. */
  canonical (written: string): string
  /** What the deprecated key `backend` may say besides the kernel's own words (`backendDevices`). */
  readonly deviceWords: ReadonlyMap<string, Device>
}
