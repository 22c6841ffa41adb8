import { access, constants } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** Where a program is, as a shell finds it; null when PATH does not have it. */
export async function pathTo (program: string, env: Readonly<Record<string, string | undefined>>): Promise<string | null> {
  const places = isAbsolute(program) ? [program] : (env.PATH ?? '').split(delimiter).filter(folder => folder !== '').map(folder => join(folder, program))
  for (const place of places) {
    if (await access(place, constants.X_OK).then(() => true, () => false)) return place
  }
  return null
}
