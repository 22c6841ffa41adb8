import { chmod, chown, lstat, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Found, Kept, Thing } from './thing.js'

/** What a shell reads when it starts, below the home of its user. */
const STARTERS = ['.bashrc', '.bash_profile', '.profile', '.zshrc', '.config/fish/config.fish'] as const

/** The line that `svc completion --help` tells to put there, and those that do the same; nothing else is on it. */
const LINE = /^[ \t]*(?:(?:source|\.)[ \t]+<\((?:npx )?svc completion (?:bash|zsh)\)|eval "\$\((?:npx )?svc completion (?:bash|zsh)\)"|(?:npx )?svc completion fish \| (?:source|\.))[ \t]*(?:#.*)?$/

/** Lines that load the completion of svc, in the files of one user. The rest of such a file stays as it is. */
export async function shellLines (home: string): Promise<Found> {
  const things: Thing[] = []
  const kept: Kept[] = []
  for (const path of STARTERS.map(name => join(home, name))) {
    const stats = await lstat(path).catch(() => null)
    const line = stats === null ? undefined : (await readFile(path, 'utf8').catch(() => '')).split('\n').find(each => LINE.test(each))
    if (line === undefined) continue
    if (stats!.isFile()) things.push({ kind: 'file', name: `${path}, only the line: ${line.trim()}`, remove: () => withoutLines(path) })
    else kept.push({ name: path, why: `it is a link; remove its line yourself: ${line.trim()}` })
  }
  return { things, kept }
}

/** As a whole or not at all: a user whose disk is full keeps the file. */
async function withoutLines (path: string): Promise<void> {
  const stats = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw error
  })
  if (stats === null) return
  const text = await readFile(path, 'utf8')
  const rest = text.split('\n').filter(line => !LINE.test(line)).join('\n')
  if (rest === text) return
  const beside = `${path}.svc-${process.pid}`
  try {
    await writeFile(beside, rest, { flag: 'wx', mode: 0o600 })
    // a rename would hand the file to whoever runs this
    if (process.getuid?.() === 0) await chown(beside, stats.uid, stats.gid)
    await chmod(beside, stats.mode & 0o7777)
    await rename(beside, path)
  } catch (error) {
    await rm(beside, { force: true })
    throw error
  }
}
