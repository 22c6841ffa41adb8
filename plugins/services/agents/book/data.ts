import { randomBytes } from 'node:crypto'
import { access, chmod, mkdir, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { removeFolder, type Remains } from '../../../api/services/ref.js'
import { RECORD } from './record.js'

/** Stands in what the gateway made, and may therefore delete. */
const MARKER = '.svc-managed'

export const dataOf = (folder: string): string => join(folder, 'data')
export const logsOf = (folder: string): string => join(folder, 'provision-logs')

/** A folder that was there before, with something in it, stays without a marker: it is not ours to delete. */
export async function makeData (folder: string): Promise<{ readonly managed: boolean }> {
  const data = dataOf(folder)
  await mkdir(data, { recursive: true, mode: 0o700 })
  if ((await readdir(data)).length === 0) await writeFile(join(data, MARKER), 'made by svc, which deletes it with the agent\n')
  return { managed: await isManaged(folder) }
}

export function isManaged (folder: string): Promise<boolean> {
  return access(join(dataOf(folder), MARKER)).then(() => true, () => false)
}

/** What could not be taken away. */
export interface Left extends Pick<Remains, 'count' | 'first'> {
  /** Files and folders that are to go with all that is in them. */
  readonly places: readonly string[]
}

/**
 * Takes away what the gateway made for an agent, and goes on over what it may not delete: null when nothing of it is left. The
 * record goes last, and stays while something is left. Data without a marker stays.
 */
export async function removeAll (folder: string): Promise<Left | null> {
  const data = dataOf(folder)
  const kept = ['data', RECORD]
  const ofData = await isManaged(folder) ? await removeData(data) : null
  // an empty one is what a removal leaves that was cut off at its very end
  await rmdir(data).catch(() => undefined)
  const ofRest = await removeFolder(folder, kept)
  const [first, ...others] = [ofData, ofRest].filter(remains => remains !== null)
  if (first !== undefined) {
    const names = await readdir(folder).catch(() => [])
    const places = [...ofData === null ? [] : ['data'], ...names.filter(name => !kept.includes(name))].map(name => join(folder, name))
    return { places, count: others.reduce((sum, { count }) => sum + count, first.count), first: first.first }
  }
  const unwritten = await rm(join(folder, RECORD), { force: true }).then(() => null, (error: Error) => error)
  if (unwritten !== null) return { places: [join(folder, RECORD)], count: 1, first: unwritten }
  // stays with the data that was there before; one that is empty goes when the gateway starts
  await rmdir(folder).catch(() => undefined)
  return null
}

/** The marker goes with the folder's last file only: a removal that is cut off goes on where it was. */
async function removeData (data: string): Promise<Remains | null> {
  return await removeFolder(data, [MARKER]) ?? await removeFolder(data)
}

/**
 * The files of a wiring. Throws for a path that leads out of the folder.
 * @param isOpen other users of the machine may read them, and write to the folder, as far as they can reach it: what is above it
 * is closed to them
 */
export async function writeFiles (data: string, files: Readonly<Record<string, string>>, isOpen: boolean): Promise<void> {
  const folderMode = isOpen ? 0o777 : 0o700
  if (isOpen) await chmod(data, folderMode)
  for (const [path, text] of Object.entries(files)) {
    const file = join(data, path)
    if (!file.startsWith(`${data}${sep}`)) throw new Error(`its wiring has a file outside its folder: ${path}`)
    await mkdir(dirname(file), { recursive: true, mode: folderMode })
    await writeFile(file, text, { mode: isOpen ? 0o644 : 0o600 })
  }
}

/** Kept in a file that only the gateway's user reads. An empty one was left by a gateway that was killed while it made it. */
export async function secretOf (folder: string): Promise<string> {
  const file = join(folder, 'secret')
  const known = await readFile(file, 'utf8').catch(() => '')
  if (known !== '') return known
  const made = randomBytes(32).toString('hex')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(file, made, { mode: 0o600 })
  return made
}
