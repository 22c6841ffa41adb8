import { createServiceRef, type PluginCall } from 'svc-gateway/plugin'

/** What an image is made from; what is left open comes from the slot. */
export interface ImageWish {
  /** Name of an image slot, or a curated model. */
  readonly model: string
  readonly prompt: string
  readonly n?: number | undefined
  /** `WxH` in pixels. */
  readonly size?: string | undefined
}

/** The client's request that images are made for. */
export type ClientRequest = Pick<PluginCall, 'requestId' | 'origin'>

/** Images for other plugins, made as `POST /v1/images/generations` makes them. */
export interface ImageMaker {
  /** Paths of the images on this gateway. Rejects with what a client would be answered, or the signal's reason. */
  make (wish: ImageWish, request: ClientRequest, signal: AbortSignal): Promise<readonly string[]>
}

export const imageMakerRef = createServiceRef<ImageMaker>('images.maker')
