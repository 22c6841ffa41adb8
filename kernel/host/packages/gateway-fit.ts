import satisfies from 'semver/functions/satisfies.js'
import validRange from 'semver/ranges/valid.js'
import { z } from 'zod'
import { HOST_PACKAGE } from './package-source.js'

const peersSchema = z.looseObject({ peerDependencies: z.looseObject({ [HOST_PACKAGE]: z.string().optional() }).optional() })

/**
 * Why a package does not fit this gateway by its `peerDependencies`, in words that follow its name; null when it fits.
 * A prerelease counts as its release would, and what is no range of versions (`workspace:*`) is not judged. Pure.
 */
export function gatewayMisfit (packageJson: unknown, gateway: string): string | null {
  const range = peersSchema.safeParse(packageJson).data?.peerDependencies?.[HOST_PACKAGE]
  if (range === undefined || validRange(range) === null || satisfies(gateway, range, { includePrerelease: true })) return null
  return `needs ${HOST_PACKAGE} ${range} (peerDependencies of its package.json), and this is ${HOST_PACKAGE} ${gateway}; ` +
    'take a version of the package that is made for this one, or another release of the gateway'
}

/** `package.json:7`, the first line that holds the key; without a line when none does. Pure. */
export function keyPlace (text: string, key: string): string {
  const index = text.search(new RegExp(`"${key}"\\s*:`))
  return index < 0 ? 'package.json' : `package.json:${text.slice(0, index).split('\n').length}`
}

/** What is wrong with text that should be JSON, with its line; null when nothing is. Pure. */
export function jsonProblem (text: string): string | null {
  try {
    JSON.parse(text)
    return null
  } catch (error) {
    const { message } = error as SyntaxError
    const position = /at position (\d+)/.exec(message)?.[1]
    const at = position === undefined ? text.length : Number(position)
    return `package.json:${text.slice(0, at).split('\n').length}: it is not valid JSON: ${message}`
  }
}
