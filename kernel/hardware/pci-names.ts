import type { ProbeFiles } from './probe-files.js'

const DATABASES = ['/usr/share/misc/pci.ids', '/usr/share/hwdata/pci.ids']

/** The marketing name of a PCI device, from the distribution's own database; null when it has none. */
export async function pciName (files: ProbeFiles, vendor: string, device: string): Promise<string | null> {
  for (const path of DATABASES) {
    const text = await files.text(path)
    const name = text === null ? null : findName(text, vendor, device)
    if (name !== null) return name
  }
  return null
}

/** `vvvv  Vendor` starts a vendor, a tab and `dddd  Device` a device of it. Ids are lowercase hex. Pure. */
function findName (text: string, vendor: string, device: string): string | null {
  const start = text.search(new RegExp(`^${vendor}  `, 'm'))
  if (start === -1) return null
  const section = text.slice(start)
  const next = section.slice(1).search(/^[0-9a-f]{4} {2}/m)
  const own = next === -1 ? section : section.slice(0, next + 1)
  return new RegExp(`^\\t${device}  (.+)$`, 'm').exec(own)?.[1]?.trim() ?? null
}
