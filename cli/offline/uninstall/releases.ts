import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstat, readdir, readFile, realpath, rename } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { programFile } from '../../program-file.js'
import { fileThing, removeEmpty, targetOfLink, type Found, type Kept, type Thing } from './thing.js'

/** Beside the trees: the launcher, the link to the tree in use, an update that was under way, and what it kept for a return. */
const BESIDE = /^(launch\.mjs(\.new)?|current(\.new)?|switch\.json(\.tmp)?|kept-[0-9a-f]{12})$/
const TREE = /^svc-\d[\w.+-]*$/

/** The folder of releases that this program is one of; null where it is none. */
export async function ownReleases (): Promise<string | null> {
  const tree = await ownTree()
  const current = await realpath(join(dirname(tree), 'current')).catch(() => null)
  return current === tree ? dirname(tree) : null
}

/** The package that this program belongs to: a tree of a release, a checkout, or one that npm installed. */
export async function ownTree (): Promise<string> {
  return dirname(dirname(dirname(await realpath(programFile))))
}

/** Releases in a folder, and `svc` on PATH where it leads there. The tree of this very program goes last. */
export async function releasesIn (base: string, path: readonly string[]): Promise<Found> {
  const names = await readdir(base).catch(() => null)
  if (names === null || (await targetOfLink(base)) !== null) return { things: [], kept: [] }
  const own = await ownTree()
  const isOurs = await Promise.all(names.map(async name => BESIDE.test(name) || await isTree(join(base, name))))
  const ours = names.filter((_, i) => isOurs[i]).map(name => join(base, name))
  const real = await realpath(base)
  const others = ours.filter(place => join(real, basename(place)) !== own)
  const kept: readonly Kept[] = names.filter((_, i) => !isOurs[i]).map(name => ({ name: join(base, name), why: 'it is not a release of svc' }))
  const things: Thing[] = [...await shims(real, path), ...others.map(place => fileThing('release', place))]
  if (others.length < ours.length) things.push({ kind: 'release', name: own, remove: () => removeOwn(own) })
  if (ours.length > 0 && kept.length === 0) things.push({ kind: 'release', name: base, remove: () => removeEmpty(base) })
  return { things, kept }
}

async function isTree (folder: string): Promise<boolean> {
  if (!TREE.test(basename(folder))) return false
  const stats = await lstat(folder)
  if (!stats.isDirectory()) return false
  // one that was cut off while it was unpacked or removed has no such file any more, or not yet
  if (/\.(new|stale|removed)$/.test(folder)) return true
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '')
  return /"name": *"svc-gateway"/.test(text)
}

async function shims (base: string, folders: readonly string[]): Promise<readonly Thing[]> {
  const links = await Promise.all([...new Set(folders)].map(async folder => {
    const link = join(folder, 'svc')
    const target = await targetOfLink(link)
    return target !== null && target.startsWith(base + sep) ? link : null
  }))
  return links.filter(link => link !== null).map(link => fileThing('file', link))
}

/** By a program of its own, which goes on when this one is killed: what is half-removed could not be called again. */
async function removeOwn (tree: string): Promise<void> {
  const aside = `${tree}.removed`
  await rename(tree, aside)
  const child = spawn('rm', ['-rf', '--', aside], { detached: true, stdio: 'ignore' })
  const [code] = await once(child, 'exit') as [number | null]
  if (code !== 0) throw new Error(`rm ended with ${code ?? 'a signal'}; remove ${aside} yourself`)
}
