import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const maker = fileURLToPath(new URL('bundle/make-one-file.js', import.meta.url))

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
  await promisify(execFile)(process.execPath, [maker, program, join(folder, 'program.js')])
  const start = join(folder, basename(program).replace(/\.js$/, '.cjs'))
  writeFileSync(start, START)
  return start
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
