import { homedir } from 'node:os'
import { join } from 'node:path'

/** Where the runs of an agent from the command line keep their configuration and sessions. */
export function runFolder (name: string, env: Readonly<Record<string, string | undefined>>): string {
  const { HOME: home = homedir(), XDG_STATE_HOME: state } = env
  return join(state ?? join(home, '.local', 'state'), 'svc', 'agents', name)
}
