import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Set where the bundle is made, which lies one folder deeper than what the compiler writes. */
declare const SVC_BUNDLED: true | undefined

const isBundled = typeof SVC_BUNDLED !== 'undefined'

/** Root of this package. */
export const packageRoot = fileURLToPath(new URL(isBundled ? '../../../..' : '../../..', import.meta.url)).replace(/\/$/, '')

/**
 * The folder that plugins find as `svc-gateway`: its `exports` lead to the contract that this process runs on. Those of
 * the package lead to the bundle, those of `plugins/` to what the compiler wrote.
 */
export const hostPackage = isBundled ? packageRoot : join(packageRoot, 'dist', 'plugins')
