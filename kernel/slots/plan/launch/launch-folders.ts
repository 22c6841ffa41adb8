import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * The folders that hold what a launch reads, and no others: a root or the store where one covers the file, else the
 * file's own folder. A file that is a link (a hub's cache keeps its files so) brings along where it leads to.
 */
export function foldersOf (files: ReadonlyArray<string | null | undefined>, roots: readonly string[]): readonly string[] {
  const folders = new Set<string>()
  for (const file of files) {
    if (file == null) continue
    for (const place of [file, realPath(file)]) folders.add(roots.find(root => place.startsWith(`${root}/`)) ?? dirname(place))
  }
  return [...folders]
}

function realPath (path: string): string {
  try {
    return realpathSync(path)
  } catch {
    // it is missing: told when the launch is prepared
    return path
  }
}
