import { createServiceRef } from 'svc-gateway/plugin'

export { pageOf, type Page } from './page.js'

/** A file that clients have put here, or that was made for them. Times in epoch seconds. */
export interface StoredFile {
  readonly id: string
  /** Counts the files of this gateway: several are made within a second. */
  readonly seq: number
  readonly filename: string
  readonly purpose: string
  readonly bytes: number
  readonly created_at: number
  readonly expires_at: number | null
}

export interface MadeFile {
  /** Given by its maker, so that one that is made again after a crash is the same. */
  readonly id: string
  readonly filename: string
  readonly purpose: string
  /** Seconds; null keeps it until it is deleted. */
  readonly expiresAfterS: number | null
}

/** The files of `/v1/files`, for other plugins. */
export interface FileStore {
  /** Throws `files.not_found`. */
  get (id: string): StoredFile
  /** Where its bytes are on this host. They never change; the name goes with the file. */
  path (file: StoredFile): string
  /**
   * Takes over a file of this host, which is one of the store's when the promise resolves; one that was taken over already is
   * left alone. The bounds on what clients put here do not refuse it.
   */
  take (path: string, made: MadeFile): Promise<StoredFile>
}

export const fileStoreRef = createServiceRef<FileStore>('v1.files')
