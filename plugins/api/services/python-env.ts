import { access, constants, mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { PythonProgram } from 'svc-gateway/plugin'
import { servicesError } from './errors.js'
import { output, run, type InstallOptions } from './installer-run.js'

/** Installs packages with overrides, and in seconds where pip takes minutes. */
const UV = 'uv==0.13.9'
const ENV_FOLDER = /^env-[0-9a-f]{8}$/

/**
 * Makes an environment with a program and what it needs, beside those that are there. Resolves with the name of its folder
 * once the version that was asked for is in it; a failed one is removed. Throws `services.cannot_install` where no Python
 * fits, and `services.install_failed`.
 */
export async function installPython (program: Omit<PythonProgram, 'command'>, options: InstallOptions): Promise<string> {
  const { folder, onMessage } = options
  const python = await findPython(program, options.env)
  if (python === null) throw noPython(program)
  const name = `env-${randomBytes(4).toString('hex')}`
  const place = join(folder, name)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    onMessage(`creating an environment of ${python}`)
    await run(python, ['-m', 'venv', place], options)
    const wanted = [`${program.package}==${program.version}`, ...program.also ?? []]
    const { leaveOut = [] } = program
    if (leaveOut.length === 0) {
      onMessage(`installing ${wanted.join(', ')}`)
      await run(join(place, 'bin/pip'), ['install', '--disable-pip-version-check', ...wanted], options)
    } else {
      onMessage('installing uv')
      await run(join(place, 'bin/pip'), ['install', '--disable-pip-version-check', '--quiet', UV], options)
      const overrides = join(place, 'overrides.txt')
      await writeFile(overrides, leaveOut.map(name => `${name}; sys_platform == 'never'\n`).join(''))
      onMessage(`installing ${wanted.join(', ')}`)
      // compiled once here, or the first start takes that long
      const cache = await keepsCache(options.env) ? [] : ['--no-cache']
      const how = [...cache, '--compile-bytecode', '--python', join(place, 'bin/python'), '--overrides', overrides]
      await run(join(place, 'bin/uv'), ['pip', 'install', ...how, ...wanted], options)
    }
    const found = await versionOf(place, program.package, options.env)
    if (found === program.version) return name
    throw servicesError('services.install_failed', `${program.package} ${found ?? 'of unknown version'} was installed instead of ${program.version}`)
  } catch (error) {
    await rm(place, { recursive: true, force: true })
    throw error
  }
}

/** Whether the installer can keep what it has fetched: a service user often has no home of its own. */
async function keepsCache ({ UV_CACHE_DIR: own, XDG_CACHE_HOME: caches, HOME: home = '/nonexistent' }: InstallOptions['env']): Promise<boolean> {
  const folder = own ?? caches ?? join(home, '.cache')
  return await mkdir(folder, { recursive: true }).then(() => access(folder, constants.W_OK)).then(() => true, () => false)
}

/** Environments of earlier installations, and of ones that were cut off. */
export async function sweepEnvironments (folder: string, but: string | null): Promise<void> {
  const names = await readdir(folder).catch(() => [])
  const gone = names.filter(name => ENV_FOLDER.test(name) && name !== but)
  await Promise.all(gone.map(name => rm(join(folder, name), { recursive: true, force: true })))
}

/** The first Python on PATH that the program runs on; null without one. */
export async function findPython (
  { pythons }: Pick<PythonProgram, 'pythons'>, env: Readonly<Record<string, string | undefined>>
): Promise<string | null> {
  for (const command of [...pythons.map(minor => `python3.${minor}`), 'python3']) {
    const said = await output(command, ['-c', 'import sys, venv, ensurepip; print(sys.version_info[1])'], env)
    if (said !== null && pythons.includes(Number(said))) return command
  }
  return null
}

export function noPython ({ package: name, pythons }: Pick<PythonProgram, 'package' | 'pythons'>): Error {
  const versions = pythons.map(minor => `3.${minor}`).join(' or ')
  return servicesError('services.cannot_install', `${name} needs Python ${versions} with its venv module, which is not on the gateway's PATH; install it (on Debian: apt-get install python3-venv)`,
    { details: { pythons: versions } })
}

async function versionOf (place: string, name: string, env: InstallOptions['env']): Promise<string | null> {
  return await output(join(place, 'bin/python'), ['-c', 'import importlib.metadata as m, sys; print(m.version(sys.argv[1]))', name], env)
}
