import { rmSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { lighterCode } from './bundle/lighter-code.js'

/** Packages that are native or load files of their own. */
const outside = /^(?:node:|(?:libsql|dockerode|node-llama-cpp|typescript|light-my-request|@fastify\/(?:ajv-compiler|fast-json-stringify-compiler))$)/

const made = new Map<string, Promise<string>>()

/**
 * A program with all that it imports in one file, for a test that starts it again and again: half of what a gateway takes
 * to start is a thousand modules, each looked for, read and compiled. What V8 makes of the file is kept when the first
 * process sends its first message, or ends by itself; those that start after it compile nothing. Its modules still know
 * where they lie. It stays until this process ends.
 */
export function oneFile (program: string): Promise<string> {
  const file = made.get(program) ?? bundle(program)
  made.set(program, file)
  return file
}

async function bundle (program: string): Promise<string> {
  const folder = await mkdtemp(join(fileURLToPath(new URL('.', import.meta.url)), 'one-file-'))
  // not at the end of a test: of tests that run at once, the first to end would take it from the others
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const bundle = await rolldown({
    input: program,
    platform: 'node',
    external: outside,
    plugins: [{ name: 'as it ships, and where modules lie', transform: (code, id) => changed(code, id) }]
  })
  const { output } = await bundle.generate({ format: 'esm', comments: false, codeSplitting: false })
  await bundle.close()
  writeFileSync(join(folder, 'program.js'), asFunction(output[0].code))
  const start = join(folder, basename(program).replace(/\.js$/, '.cjs'))
  writeFileSync(start, START)
  return start
}

function changed (code: string, id: string): { readonly code: string, readonly map: null } | null {
  const light = id.includes('/node_modules/') ? lighterCode(id, code) ?? code : code
  const placed = light
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
    .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)))
  return placed === code ? null : { code: placed, map: null }
}

/** Node takes kept code for scripts alone. A function may wait as a module does, and is given what a script cannot import. */
function asFunction (module: string): string {
  const body = module
    .replaceAll(/^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+)|\{(.*)\})? from ("[^"]+");$/gm, (_, own?: string, all?: string, names?: string, from?: string) =>
      [own, all, names === undefined ? undefined : `{${names.replaceAll(' as ', ': ')}}`]
        .filter(target => target !== undefined).map(target => `const ${target} = require(${from!});`).join(' '))
    .replaceAll(/^import ("[^"]+");$/gm, (_, from: string) => `require(${from});`)
    .replaceAll(/^export \{.*\};$/gm, '')
    .replaceAll(/\bimport\(/g, '$import(')
  return `(async function (require, $import) { 'use strict'; ${body}\n})`
}

const START = `const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { Script } = require('node:vm')

const [filename, kept] = [join(__dirname, 'program.js'), join(__dirname, 'kept')]
const cachedData = existsSync(kept) ? readFileSync(kept) : undefined
const script = new Script(readFileSync(filename, 'utf8'), { filename, cachedData })
if (cachedData === undefined) {
  const { send } = process
  const keep = () => {
    process.off('exit', keep).send = send
    const draft = kept + process.pid
    writeFileSync(draft, script.createCachedData())
    renameSync(draft, kept)
  }
  process.once('exit', keep)
  if (send !== undefined) {
    process.send = (...message) => {
      keep()
      return process.send(...message)
    }
  }
}
script.runInThisContext()(require, name => import(name))
`
