import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The search path with the programs of the Python that pyenv has chosen, in place of its shims: each call of a shim starts
 * fifty shells to find out which one that is. As it is, where pyenv is not there or the choice is not that of the machine.
 */
export function withoutShims (path: string, env: Readonly<Record<string, string | undefined>>): string {
  if (env.PYENV_VERSION !== undefined) return path
  return path.split(':').map(folder => /\/\.pyenv\/shims\/?$/.test(folder) ? chosen(dirname(folder)) ?? folder : folder).join(':')
}

function chosen (pyenv: string): string | null {
  const file = join(pyenv, 'version')
  if (!existsSync(file)) return null
  const [version = ''] = readFileSync(file, 'utf8').trim().split(/\s+/)
  const folder = join(pyenv, 'versions', version, 'bin')
  return version !== '' && existsSync(folder) ? folder : null
}
