import { access, constants } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** Absolute path of a program, or null. `node` is the Node that runs the gateway. */
export async function findProgram (command: string, path: string): Promise<string | null> {
  if (command === 'node') return process.execPath
  const places = isAbsolute(command)
    ? [command]
    : path.split(delimiter).filter(dir => isAbsolute(dir)).map(dir => join(dir, command))
  for (const place of places) {
    if (await access(place, constants.X_OK).then(() => true, () => false)) return place
  }
  return null
}
