import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

/** Packages that are native or load files of their own. */
const outside = /^(?:node:|(?:libsql|dockerode|node-llama-cpp|typescript|light-my-request|@fastify\/(?:ajv-compiler|fast-json-stringify-compiler))$)/

/**
 * A program with all that it imports in one file, for a test that starts it again and again: half of what a gateway takes
 * to start is a thousand modules, each looked for, read and compiled. Its modules still know where they lie. It stays until
 * this process ends.
 */
export async function oneFile (program: string): Promise<string> {
  const folder = await mkdtemp(join(fileURLToPath(new URL('.', import.meta.url)), 'one-file-'))
  // not at the end of a test: of tests that run at once, the first to end would take it from the others
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const bundle = await rolldown({
    input: program,
    platform: 'node',
    external: outside,
    plugins: [{
      name: 'where modules lie',
      transform: (code, id) => code.includes('import.meta.url')
        ? { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null }
        : null
    }]
  })
  await bundle.write({ dir: folder, format: 'esm', comments: false })
  await bundle.close()
  return join(folder, basename(program))
}
