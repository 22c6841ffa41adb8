import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { EmbeddedEngine } from './launch.js'

/**
 * Where the embedded engine and its optional dependency are. Without the dependency the marker names the place
 * where `npm install node-llama-cpp` next to the gateway would put it, so installing it needs no restart.
 */
export function locateEmbeddedEngine (): EmbeddedEngine {
  return { main: fileURLToPath(new URL('./embedded/main.js', import.meta.url)), marker: markerPath() }
}

function markerPath (): string {
  try {
    return createRequire(import.meta.url).resolve('node-llama-cpp')
  } catch {
    return fileURLToPath(new URL('../../../../node_modules/node-llama-cpp/dist/index.js', import.meta.url))
  }
}
