import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type SvcError } from 'svc-gateway/plugin'
import { modelError } from '../errors.js'

export interface DiskSpace {
  /** Names the file system, to see which pulls share it. */
  readonly device: number
  readonly freeBytes: number
}

export type ReadDisk = (path: string) => Promise<DiskSpace>

/** Of the file system that a path is on, or will be: the nearest folder that exists. */
export async function readDisk (path: string): Promise<DiskSpace> {
  for (let at = path; ; at = dirname(at)) {
    try {
      const [{ dev }, { bavail, bsize }] = await Promise.all([stat(at), statfs(at)])
      return { device: dev, freeBytes: bavail * bsize }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || at === dirname(at)) throw error
    }
  }
}

export interface SpaceNeeds {
  readonly neededBytes: number
  /** What other pulls that run will still write there. */
  readonly promisedBytes: number
  readonly reserveBytes: number
}

/** `model.insufficient_disk` when it does not fit beside what others were promised; null when it does. Pure. */
export function spaceRefusal (folder: string, { freeBytes }: DiskSpace, needs: SpaceNeeds): SvcError | null {
  const { neededBytes, promisedBytes, reserveBytes } = needs
  if (neededBytes + promisedBytes + reserveBytes <= freeBytes || neededBytes === 0) return null
  const others = promisedBytes === 0 ? '' : `, ${gb(promisedBytes)} of which other pulls will fill`
  return modelError('model.insufficient_disk',
    `${gb(neededBytes)} do not fit into ${folder}: ${gb(freeBytes)} are free${others}, and ${gb(reserveBytes)} stay free; make room, or set another [models] store`,
    {
      details: {
        needed_bytes: neededBytes, free_bytes: freeBytes, promised_bytes: promisedBytes, reserve_bytes: reserveBytes, folder
      }
    })
}

function gb (bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${(bytes / 1e6).toFixed(1)} MB`
}
