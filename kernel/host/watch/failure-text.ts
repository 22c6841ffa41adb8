import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PLUGIN_PLACE } from '../../contract/brand.js'
import { messageOf } from '../../contract/index.js'
import { filesOf } from '../packages/package-source.js'
import { sourcePlace } from './source-place.js'

/** As many files of a package are looked at to find the one that Node does not name. */
const LOOKED_AT = 200

/**
 * What went wrong in a plugin's code, with the file and the line where its own code was last, and what to do about it
 * where that is known. `root`: the folder of its package, with a slash at the end; files are named relative to it.
 */
export async function failureText (error: unknown, root: string | null): Promise<string> {
  const message = messageOf(error)
  if (root === null || !(error instanceof Error)) return message
  const [told, place] = await (isModuleError(error) ? moduleFailure(error, root) : codeFailure(error, root))
  return place === null ? told : `${place}: ${told}`
}

/** The same of what is wrong with something that was declared at `call`. */
export function placed (message: string, call: unknown, root: string | null): string {
  const place = call instanceof Error && root !== null ? placeOf(call, root) : null
  return place === null ? message : `${place}: ${message}`
}

/** Where a plugin was defined. */
export function definitionOf (plugin: unknown): unknown {
  return (plugin as Record<symbol, unknown> | null | undefined)?.[PLUGIN_PLACE]
}

type Told = readonly [message: string, place: string | null]

async function codeFailure (error: Error, root: string): Promise<Told> {
  const place = placeOf(error, root)
  if (place !== null || !(error instanceof SyntaxError)) return [error.message, place]
  return [error.message, await syntaxErrorPlace(root)]
}

/** `src/index.ts:12`, the first line of the stack that lies in the folder; null when none does. */
export function placeOf (error: Error, root: string): string | null {
  for (const text of (error.stack ?? '').split('\n')) {
    const from = text.indexOf(root)
    const [, file, line, column] = from < 0 ? [] : /^([^:)]+):(\d+)(?::(\d+))?/.exec(text.slice(from + root.length)) ?? []
    if (file === undefined || file.startsWith('node_modules/')) continue
    return sourcePlace(root, { file, line: Number(line), column: column === undefined ? undefined : Number(column) })
  }
  return null
}

function isModuleError ({ code }: NodeJS.ErrnoException): boolean {
  return code !== undefined && /^ERR_(?:MODULE_NOT_FOUND|UNKNOWN_FILE_EXTENSION|PACKAGE_PATH_NOT_EXPORTED|UNSUPPORTED_DIR_IMPORT|UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING|REQUIRE_ESM)$|^MODULE_NOT_FOUND$/.test(code)
}

/** A file or a package that is not found, or that Node cannot load as it is. */
async function moduleFailure (error: NodeJS.ErrnoException, root: string): Promise<Told> {
  const message = error.message.replaceAll(root, '')
  if (/TYPE_STRIPPING|UNKNOWN_FILE_EXTENSION/.test(error.code!)) {
    const file = message.split(/ for |: /).at(-1)!.replaceAll(/^"|"$|file:\/\//g, '')
    const isTypeScript = /\.[cm]?tsx?$/.test(file)
    const advice = isTypeScript ? 'it is TypeScript: build first (npm run build), and point the entry ("exports") at the JavaScript' : 'Node cannot load it; point the entry ("exports") at JavaScript'
    return [advice, file]
  }
  if (error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') {
    return ['it names no entry for `import`: set "exports" to the built file, as "./dist/index.js"', 'package.json']
  }
  const [, missing, , from] = /^Cannot find (?:module|package) '([^']+)'( imported from (.+?))?(?:\n|$)/.exec(message) ?? []
  if (missing === undefined) return [message, placeOf(error, root)]
  const isOwn = error.message.includes(`'${root}${missing}'`)
  if (from === undefined || from.startsWith('/')) {
    return [`the entry ${isOwn ? missing : 'that it names'} does not exist; run \`npm run build\`, and check that "exports" and "files" name the built files`, 'package.json']
  }
  const place = await importPlace(root, from, isOwn ? missing.split('/').at(-1)! : missing)
  if (isOwn) return [`it imports ${missing}, which does not exist; run \`npm run build\`, and check that "files" names the built files`, place]
  return [`it imports the package '${missing}', which is not installed with it; declare it in "dependencies" of package.json`, place]
}

async function importPlace (root: string, file: string, word: string): Promise<string> {
  const lines = (await readFile(join(root, file), 'utf8').catch(() => '')).split('\n')
  const index = lines.findIndex(line => line.includes(word) && /\b(?:import|from|require)\b/.test(line))
  return index < 0 ? file : sourcePlace(root, { file, line: index + 1 })
}

/** Node does not tell where an ECMAScript module cannot be parsed; its own check of one file does. */
async function syntaxErrorPlace (root: string): Promise<string | null> {
  const files = (await filesOf(root.slice(0, -1)).catch(() => [])).filter(file => /\.[cm]?js$/.test(file)).slice(0, LOOKED_AT)
  for (const file of files) {
    const told = await checkSyntax(join(root, file))
    const line = told === null ? undefined : /:(\d+)\n/.exec(told)?.[1]
    if (told !== null) return line === undefined ? file : sourcePlace(root, { file, line: Number(line) })
  }
  return null
}

/** What Node says of a file that it cannot parse; null when it can. Nothing of the file is run. */
function checkSyntax (path: string): Promise<string | null> {
  return new Promise(resolve => {
    execFile(process.execPath, ['--check', path], { env: {} }, (error, _stdout, stderr) => { resolve(error === null ? null : stderr) })
  })
}
