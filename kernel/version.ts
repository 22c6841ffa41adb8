import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './config/package-root.js'

export { packageRoot }

/** The release, from package.json: the one place that holds it. */
export const version: string = (JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }).version
