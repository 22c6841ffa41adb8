import { createServiceRef } from 'svc-gateway/plugin'

/** Images that were made, for a while: what `url` of an image answer leads to. */
export interface ImageCache {
  /** Keeps a PNG and gives its path on this gateway. On disk when it resolves. */
  put (png: Buffer): Promise<string>
}

export const imageCacheRef = createServiceRef<ImageCache>('images.cache')
