import { readFileSync } from 'node:fs'

const manifest = new URL('../../package.json', import.meta.url)
const { version, engines } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string, engines: { node: string } }

/** The release, from package.json. */
export { version }

/** The least version of Node that it runs on. */
export const leastNode = engines.node.replace(/^>=\s*/, '')
