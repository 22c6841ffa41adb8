import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { svcError } from '../../contract/index.js'
import { gpuVisibility, type Visibility, type VisibilityInput } from './gpu-visibility.js'

/**
 * What this host gives an engine on its device. Throws `slot.load_failed` when the device is not there: an engine
 * that was started anyway would quietly run on the CPU.
 */
export function deviceAccess (
  wanted: Omit<VisibilityInput, 'nodes'>, nodes = deviceNodes(process.platform)
): Omit<Visibility, 'missing'> {
  const { device, gpuIndex } = wanted
  const { missing, ...access } = gpuVisibility({ ...wanted, nodes })
  if (missing.length === 0) return access
  throw svcError('slot.load_failed',
    `device ${device} is missing: this host lacks ${missing.join(' and ')}; load the driver, run \`svc probe\`, or choose another device for the slot`,
    { details: { device, gpu_index: gpuIndex, missing } })
}

/** Device nodes of GPUs and NPUs; null where there are none to ask for (not Linux). */
export function deviceNodes (platform: NodeJS.Platform, root = '/dev'): readonly string[] | null {
  if (platform !== 'linux') return null
  const matching = (folder: string, pattern: RegExp): string[] =>
    names(join(root, folder)).filter(name => pattern.test(name)).map(name => join('/dev', folder, name))
  return [
    ...matching('', /^(kfd|dxg|nvidia\d+)$/),
    ...matching('dri', /^(renderD|card)\d+$/),
    ...matching('accel', /^accel\d+$/)
  ]
}

function names (folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return [] // no such devices
  }
}
