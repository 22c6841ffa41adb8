import { createServiceRef } from 'svc-gateway/plugin'

/** Images that were made, for a while: what `url` of an image answer leads to. */
export interface ImageCache {
  /** Keeps a PNG and gives its path on this gateway. On disk when it resolves. */
  put (png: Buffer): Promise<string>
  /** The image behind such a path; null where it leads to none, or to none any more. Counts as use. */
  get (path: string): Promise<Buffer | null>
}

export const imageCacheRef = createServiceRef<ImageCache>('images.cache')
