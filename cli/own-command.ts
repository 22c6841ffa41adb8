import { realpathSync } from 'node:fs'
import { basename, delimiter, dirname, join, sep } from 'node:path'
import { programFile } from './program-file.js'

/** How users call this program. */
export type OwnCommand = 'svc' | 'npx svc'

/** The commands of the first level, as the table of them has them: it cannot be imported by what it loads. */
export const commandNames = [
  'serve', 'setup', 'demo', 'chat', 'status', 'probe', 'ps', 'cancel', 'slot', 'upstream', 'mcp', 'memory', 'agent', 'alias',
  'model', 'profile', 'stack', 'capabilities', 'service', 'board', 'config', 'doctor', 'registry', 'migrate', 'plugin',
  'engine', 'cluster', 'update', 'uninstall', 'completion'
] as const

const LOCAL_BIN = join('node_modules', '.bin')

/**
 * What the user has to type for this copy of the program: `svc` if that is how it was called or if the shell finds it
 * under that name, `npx svc` in a checkout and in a project that has it among its dependencies.
 * @param script as in `process.argv[1]`
 */
export function ownCommand (
  script: string, env: Readonly<Record<string, string | undefined>>, program = programFile
): OwnCommand {
  if (env.npm_command === 'exec' || dirname(script).endsWith(LOCAL_BIN)) return 'npx svc'
  if (basename(script) === 'svc') return 'svc'
  const own = real(program)
  // npm puts the local folders first for what it runs; the user's shell has not got them
  const folders = (env.PATH ?? '').split(delimiter).filter(folder => folder !== '' && !folder.endsWith(LOCAL_BIN))
  if (folders.some(folder => real(join(folder, 'svc')) === own)) return 'svc'
  // a service's PATH may lack the folder of global packages
  const at = program.lastIndexOf(`${sep}node_modules${sep}`)
  return at === -1 || real(join(program.slice(0, at), LOCAL_BIN, 'svc')) === own ? 'npx svc' : 'svc'
}

function real (path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}
