import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { CliFailure } from './failure.js'

interface Program { readonly command: string, readonly args: readonly string[] }

/** How packages are handled: no code of theirs runs, and nothing comes along that a plugin does not declare as its own. */
const SAFE = [
  '--ignore-scripts', '--no-audit', '--no-fund', '--omit=dev', '--omit=peer',
  // without it npm looks peers up in the registry, only to leave them out
  '--legacy-peer-deps',
  '--global=false', '--dry-run=false', '--loglevel=error', '--no-update-notifier'
]
const SHOWN_ERROR_LINES = 15

/** npm as a child process that works in one folder. */
export class Npm {
  readonly #folder: string
  readonly #env: Readonly<Record<string, string | undefined>>
  readonly #signal: AbortSignal

  constructor (folder: string, env: Readonly<Record<string, string | undefined>>, signal: AbortSignal) {
    this.#folder = folder
    this.#env = env
    this.#signal = signal
  }

  async install (...specs: readonly string[]): Promise<void> {
    await this.#run('install', ['--save-prod', '--save-exact', ...specs])
  }

  /** Without the optional dependencies of these packages: what is wanted of them is named. */
  async installExactly (...specs: readonly string[]): Promise<void> {
    await this.#run('install', ['--omit=optional', '--save-prod', '--save-exact', ...specs])
  }

  async uninstall (name: string): Promise<void> {
    await this.#run('uninstall', [name])
  }

  /** Packs a folder or tarball into `destination`; what npm tells about it. */
  async pack (source: string, destination: string): Promise<unknown> {
    const told: unknown = JSON.parse(await this.#run('pack', ['--json', '--pack-destination', destination, source]))
    return Object.values(told as object)[0]
  }

  async #run (verb: string, args: readonly string[]): Promise<string> {
    const here = { folder: this.#folder, env: this.#env, signal: this.#signal }
    return await runNpm(here, verb, [...SAFE, '--prefix', this.#folder, ...args])
  }
}

export interface NpmPlace {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
}

/** Standard output. Rejects with what npm wrote when it fails; nothing of it runs on after that. */
export async function runNpm (place: NpmPlace, verb: string, args: readonly string[]): Promise<string> {
  const { signal } = place
  const child = await startNpm(place, [verb, ...args])
  const output: Buffer[] = []
  const errors: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => { output.push(chunk) })
  child.stderr.on('data', (chunk: Buffer) => { errors.push(chunk) })
  const stop = (): void => { child.kill('SIGTERM') }
  signal.addEventListener('abort', stop, { once: true })
  const how = await ended(child)
  signal.removeEventListener('abort', stop)
  signal.throwIfAborted()
  if (how === 'exit code 0') return Buffer.concat(output).toString('utf8')
  throw new CliFailure(`npm ${verb} failed (${how})`, { hints: errorLines(Buffer.concat([...errors, ...output]).toString('utf8')) })
}

/** npm as a child in a process group of its own, for a script that stays. */
export async function startNpm (
  { folder, env, signal }: NpmPlace, args: readonly string[], detached = false
): Promise<ChildProcessByStdio<null, Readable, Readable>> {
  const npm = await findNpm(env)
  signal.throwIfAborted()
  return spawn(npm.command, [...npm.args, ...args], { cwd: folder, env: { ...env }, detached, stdio: ['ignore', 'pipe', 'pipe'] })
}

function ended (child: ChildProcess): Promise<string> {
  return new Promise(resolve => {
    child.once('error', error => resolve(error.message))
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code ?? 'unknown'}`))
  })
}

/** npm beside this Node, so that the two fit; else the first one on PATH. */
async function findNpm (env: Readonly<Record<string, string | undefined>>): Promise<Program> {
  const beside = dirname(process.execPath)
  for (const script of [join(beside, '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js'), join(beside, 'node_modules', 'npm', 'bin', 'npm-cli.js')]) {
    if (await isThere(script, constants.R_OK)) return { command: process.execPath, args: [script] }
  }
  for (const folder of [beside, ...(env.PATH ?? '').split(delimiter)]) {
    const command = join(folder, 'npm')
    if (folder !== '' && await isThere(command, constants.X_OK)) return { command, args: [] }
  }
  throw new CliFailure('npm was found neither beside Node nor on PATH', { hints: ['Install npm: plugins and engines come as npm packages.'] })
}

function isThere (path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(() => true, () => false)
}

function errorLines (text: string): string[] {
  const lines = text.split('\n').filter(line => line.trim() !== '' && !/complete log of this run|debug-\d+\.log/.test(line))
  return lines.slice(-SHOWN_ERROR_LINES).map(line => `  ${line}`)
}
