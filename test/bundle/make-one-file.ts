/*
 * usage: make-one-file.js PROGRAM FILE
 *
 * Writes a program with all that it imports as one function in a file. A process of its own, as the bundler keeps hundreds of
 * megabytes, and every program that a test starts takes longer for them.
 */

import { writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'
import { lighterCode } from './lighter-code.js'

/** Packages that are native or load files of their own. */
const outside = /^(?:node:|(?:libsql|dockerode|node-llama-cpp|typescript|light-my-request|@fastify\/(?:ajv-compiler|fast-json-stringify-compiler))$)/

const [program = '', file = ''] = process.argv.slice(2)
const bundle = await rolldown({
  input: program,
  platform: 'node',
  external: outside,
  plugins: [{ name: 'as it ships, and where modules lie', transform: (code, id) => changed(code, id) }]
})
const { output } = await bundle.generate({ format: 'esm', comments: false, codeSplitting: false })
await bundle.close()
writeFileSync(file, asFunction(output[0].code))

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
