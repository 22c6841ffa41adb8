import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import { filesBelow } from './tree.js'
import type { FolderState } from './schemas.js'

const MIB = 1024 * 1024

/** What a folder is like as a model store. Never rejects. */
export async function folderState (path: string): Promise<FolderState> {
  const stats = await stat(path).catch(() => null)
  const may = (mode: number): Promise<boolean> => access(path, mode).then(() => true, () => false)
  const isDirectory = stats?.isDirectory() ?? false
  const [readable, writable, disk, files] = await Promise.all([
    may(constants.R_OK | constants.X_OK), may(constants.W_OK | constants.X_OK), diskOf(path),
    isDirectory ? filesBelow(path).catch(() => []) : []
  ])
  return {
    path,
    exists: stats !== null,
    is_directory: isDirectory,
    readable,
    writable,
    files_count: files.length,
    size_bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    free_mb: disk?.freeMb ?? null,
    total_mb: disk?.totalMb ?? null
  }
}

export interface Disk {
  readonly freeMb: number
  readonly totalMb: number
}

export async function diskOf (path: string): Promise<Disk | null> {
  const disk = await statfs(path).catch(() => null)
  if (disk === null) return null
  return { freeMb: Math.floor(disk.bavail * disk.bsize / MIB), totalMb: Math.floor(disk.blocks * disk.bsize / MIB) }
}

interface StoreSuggestion {
  readonly path: string
  readonly free_mb: number
  readonly total_mb: number
}

/** File systems that hold files and are not the system's own business. */
const storageTypes = new Set([
  'ext2', 'ext3', 'ext4', 'xfs', 'btrfs', 'zfs', 'f2fs', 'bcachefs', 'nfs', 'nfs4', 'cifs', 'fuseblk', 'ntfs3', 'exfat', 'virtiofs', '9p'
])
const LEAST_FREE_MB = 20 * 1024
const MOST_SUGGESTIONS = 5

/** Where else models could go: mounted file systems with 20 GiB or more to spare, the largest first. Never rejects. */
export async function suggestStores (present: string, mounts = '/proc/self/mounts'): Promise<StoreSuggestion[]> {
  const text = await readFile(mounts, 'utf8').catch(() => '')
  // a container has files mounted into it one by one, as its resolv.conf
  const points = await folders(mountPoints(text).filter(path => !isSystem(path)))
  const disks = await Promise.all([...new Set(points)].map(async path => ({ path, disk: await diskOf(path) })))
  return disks
    .flatMap(({ path, disk }) => disk === null || disk.freeMb < LEAST_FREE_MB ? []
      : [{ path: storeOn(path), free_mb: disk.freeMb, total_mb: disk.totalMb }])
    .filter(({ path }) => path !== present)
    .sort((a, b) => b.free_mb - a.free_mb)
    .slice(0, MOST_SUGGESTIONS)
}

async function folders (paths: readonly string[]): Promise<readonly string[]> {
  const isFolder = await Promise.all(paths.map(path => stat(path).then(stats => stats.isDirectory(), () => false)))
  return paths.filter((_path, i) => isFolder[i])
}

/** Mount points of /proc/self/mounts that hold files; octal escapes are undone. Pure. */
export function mountPoints (text: string): string[] {
  return text.split('\n').flatMap(line => {
    const [, point, type] = line.split(' ')
    if (point === undefined || type === undefined || !storageTypes.has(type)) return []
    return [point.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))]
  })
}

/** The system's own, and the layers and volumes of container engines. */
function isSystem (path: string): boolean {
  return /^\/(boot|efi|etc|proc|sys|dev|run|snap|usr|tmp)(\/|$)/.test(path) || /^\/var\/(snap|lib\/(docker|containers|containerd|kubelet|lxc|lxcfs|machines|rancher|snapd|flatpak))(\/|$)/.test(path)
}

function storeOn (mount: string): string {
  return mount === '/' ? '/srv/models' : `${mount}/models`
}
