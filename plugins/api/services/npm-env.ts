import { randomBytes } from 'node:crypto'
import { access, constants, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { isSvcError, type NpmProgram } from 'svc-gateway/plugin'
import { servicesError } from './errors.js'
import { run, type InstallOptions } from './installer-run.js'

/** No code of a package runs while it is installed. */
const SAFE = ['--ignore-scripts', '--no-audit', '--no-fund', '--save-exact', '--omit=dev', '--no-update-notifier', '--loglevel=notice']

/**
 * Makes a folder with a package and what it needs, beside those that are there. Resolves with its name once the version that was
 * asked for is in it; a failed one is removed. Throws `services.cannot_install` without npm, and `services.install_failed`.
 */
export async function installNpm (program: NpmProgram, options: InstallOptions): Promise<string> {
  const npm = await findNpm(options.env)
  if (npm === null) throw noNpm(program)
  const name = `env-${randomBytes(4).toString('hex')}`
  const place = join(options.folder, name)
  await mkdir(place, { recursive: true, mode: 0o700 })
  try {
    const wanted = `${program.package}@${program.version}`
    await writeFile(join(place, 'package.json'), '{ "private": true }\n')
    options.onMessage(`installing ${wanted}`)
    const [command, ...first] = npm
    const install = (...more: readonly string[]): Promise<void> =>
      run(command, [...first, 'install', ...SAFE, ...more, '--prefix', place, wanted], { ...options, folder: place }, 'npm install')
    await install().catch(async (error: unknown) => {
      if (!isVersionUnknown(error)) throw error
      options.onMessage('npm does not find this version: asking the registry again without its cache')
      await install('--prefer-online')
    })
    const found = await versionIn(place, program.package)
    if (found === program.version) return name
    throw servicesError('services.install_failed', `${program.package} ${found ?? 'of unknown version'} was installed instead of ${program.version}`)
  } catch (error) {
    await rm(place, { recursive: true, force: true })
    throw error
  }
}

/** npm beside this Node, so that the two fit, else the first one on PATH: a command and its first arguments. Null without one. */
export async function findNpm (env: InstallOptions['env']): Promise<readonly [string, ...string[]] | null> {
  const beside = dirname(process.execPath)
  const script = join(beside, '..', 'lib', 'node_modules', 'npm', 'bin', 'npm-cli.js')
  if (await isThere(script, constants.R_OK)) return [process.execPath, script]
  for (const folder of [beside, ...(env.PATH ?? '').split(delimiter)]) {
    const command = join(folder, 'npm')
    if (folder !== '' && await isThere(command, constants.X_OK)) return [command]
  }
  return null
}

export function noNpm ({ package: name }: NpmProgram): Error {
  return servicesError('services.cannot_install', `${name} is installed by npm, which is neither beside Node nor on the gateway's PATH`)
}

/** What npm keeps of a registry for some minutes may be older than a version, of the package or of what it needs. */
function isVersionUnknown (error: unknown): boolean {
  return isSvcError(error) && Array.isArray(error.details.output) && error.details.output.some(line => /\bETARGET\b/.test(String(line)))
}

async function versionIn (place: string, name: string): Promise<string | null> {
  const text = await readFile(join(place, 'node_modules', name, 'package.json'), 'utf8').catch(() => '{}')
  const { version } = JSON.parse(text) as { version?: unknown }
  return typeof version === 'string' ? version : null
}

function isThere (path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(() => true, () => false)
}
