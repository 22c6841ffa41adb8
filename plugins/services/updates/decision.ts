import type { Manifest } from './manifest.js'
import { compareVersions, isWithin } from './version.js'

export interface Offer {
  /** The release that runs. */
  readonly current: string
  /** Of this machine, `linux-x64`. */
  readonly platform: string
  readonly manifest: Manifest
  /** A version that was asked for by name; null takes what the channel has. */
  readonly target: string | null
}

/**
 * `available` is to be installed, `current` is what runs. `refused` says why one that the channel names is not taken; an
 * older one is refused unless it was asked for by name.
 */
export type Decision =
  | { readonly kind: 'available' }
  | { readonly kind: 'current' }
  | { readonly kind: 'refused', readonly why: string }

/** What a manifest means for this installation. Pure. */
export function decide ({ current, platform, manifest, target }: Offer): Decision {
  const { version, revoked, revoked_reason: reason, upgrade_from: range, platforms } = manifest
  const refused = (why: string): Decision => ({ kind: 'refused', why })
  if (target !== null && version !== target) return refused(`${target} was requested, but the manifest is for ${version}`)
  const order = compareVersions(version, current)
  if (order === 0) return { kind: 'current' }
  if (revoked) return refused(`${version} is revoked${reason === undefined ? '' : `: ${reason}`}`)
  if (order < 0 && target === null) return refused(`${version} of the channel is older than the running ${current}; request that version to go back to it`)
  if (platforms !== undefined && !platforms.includes(platform)) return refused(`${version} is for ${platforms.join(', ')}, and this machine is ${platform}`)
  if (range !== undefined) {
    const takes = isWithin(current, range)
    if (takes === null) return refused(`${version} updates from '${range}', which is not a version range`)
    if (!takes) return refused(`${version} updates from ${range} only, and ${current} runs: update to one of these first`)
  }
  return { kind: 'available' }
}
