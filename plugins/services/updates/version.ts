import compare from 'semver/functions/compare.js'
import satisfies from 'semver/functions/satisfies.js'
import valid from 'semver/functions/valid.js'
import validRange from 'semver/ranges/valid.js'

/** A version as releases have it: `1.4.0`, `1.5.0-nightly.20261123`; without build metadata and a leading `v`. Pure. */
export function isVersion (text: string): boolean {
  return text.length <= 64 && valid(text) === text
}

/** Below 0 where the first one is older. Pure. */
export function compareVersions (one: string, other: string): number {
  return compare(one, other)
}

/** Whether a range of versions takes one; null for what is no range. Pure. */
export function isWithin (version: string, range: string): boolean | null {
  return validRange(range) === null ? null : satisfies(version, range, { includePrerelease: true })
}
