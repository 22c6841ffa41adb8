import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Root of the repository: this file runs as `dist/test/repository.js`. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface SourceFile {
  /** From the root, with slashes. */
  readonly path: string
  readonly text: string
}

const skipped = new Set(['node_modules', 'dist', '.git', '.svc', '.tap', 'fixtures'])

/** All TypeScript sources below some folders. */
export function sources (...folders: readonly string[]): readonly SourceFile[] {
  return filesOf('.ts', folders)
}

/** All texts in Markdown. */
export function documents (): readonly SourceFile[] {
  return filesOf('.md', ['.'])
}

function filesOf (ending: string, folders: readonly string[]): readonly SourceFile[] {
  return folders.flatMap(folder => filesIn(join(root, folder))).filter(path => path.endsWith(ending)).map(path => ({
    path: relative(root, path).split(sep).join('/'),
    text: readFileSync(path, 'utf8')
  }))
}

function filesIn (folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    if (entry.isDirectory()) return skipped.has(entry.name) ? [] : filesIn(join(folder, entry.name))
    return [join(folder, entry.name)]
  })
}
