import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FakeEngine } from '../../../../kernel/testing/index.js'

export interface SeenUpload {
  readonly headers: IncomingMessage['headers']
  readonly url: string
  /** Bytes that have come so far. */
  readonly bytes: number
  readonly response: ServerResponse
  /** Resolves when the body is complete, with all of it when it was kept; rejects when the client breaks off. */
  readonly whole: Promise<{ readonly body: Buffer, readonly sha256: string }>
  /** Resolves when the connection of this request is gone or its answer complete. */
  readonly closed: Promise<'finished' | 'aborted'>
  pause (): void
  resume (): void
}

export interface UploadEngine {
  readonly uploads: readonly SeenUpload[]
  upload (n: number): Promise<SeenUpload>
}

/**
 * Makes a fake engine read uploads as they come. `arrived` decides what happens with each: by default it is read,
 * and answered with its own hash.
 */
export function takeUploads (engine: FakeEngine, arrived: (upload: SeenUpload) => void = answerWithHash): UploadEngine {
  const uploads: SeenUpload[] = []
  const waiting: Array<() => void> = []
  engine.take((request, response) => {
    const upload = seen(request, response)
    uploads.push(upload)
    arrived(upload)
    for (const wake of waiting.splice(0)) wake()
  })
  return {
    uploads,
    upload: async n => {
      while (uploads.length <= n) await new Promise<void>(resolve => { waiting.push(resolve) })
      return uploads[n]!
    }
  }
}

export function answerWithHash (upload: SeenUpload): void {
  upload.resume()
  upload.whole.then(({ sha256 }) => {
    upload.response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ text: sha256 }))
  }, () => {})
}

function seen (request: IncomingMessage, response: ServerResponse): SeenUpload {
  const hash = createHash('sha256')
  const chunks: Buffer[] = []
  let bytes = 0
  request.pause()
  request.on('error', () => {})
  const whole = new Promise<{ body: Buffer, sha256: string }>((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      hash.update(chunk)
      if (bytes < 32 * 1024 * 1024) chunks.push(chunk)
    })
    request.on('end', () => resolve({ body: Buffer.concat(chunks), sha256: hash.digest('hex') }))
    request.on('close', () => { if (!request.complete) reject(new Error('the upload broke off')) })
  })
  whole.catch(() => {})
  const closed = new Promise<'finished' | 'aborted'>(resolve => {
    response.on('close', () => resolve(response.writableFinished ? 'finished' : 'aborted'))
  })
  // listening for data starts the flow: it waits for `resume`
  request.pause()
  return {
    headers: request.headers,
    url: request.url!,
    get bytes () { return bytes },
    response,
    whole,
    closed,
    pause: () => { request.pause() },
    resume: () => { request.resume() }
  }
}
