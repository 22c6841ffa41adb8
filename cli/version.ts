import { readFileSync } from 'node:fs'

/** Set where the bundle is made, which lies one folder deeper than what the compiler writes. */
declare const SVC_BUNDLED: true | undefined

const manifest = new URL(typeof SVC_BUNDLED === 'undefined' ? '../../package.json' : '../../../package.json', import.meta.url)
const { version, engines } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string, engines: { node: string } }

/** The release, from package.json. */
export { version }

/** The least version of Node that it runs on. */
export const leastNode = engines.node.replace(/^>=\s*/, '')
