import { once } from 'node:events'
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'

export const BOUNDARY = '----test-boundary-3f9a'
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`

export type Part = readonly [name: string, value: string | Buffer]

/** A form as bytes. A buffer becomes a file part, a text a field; order is kept. */
export function formOf (...parts: readonly Part[]): Buffer {
  const pieces = parts.map(([name, value]) => Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${typeof value === 'string' ? '' : '; filename="a.wav"\r\nContent-Type: audio/wav'}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n')
  ]))
  return Buffer.concat([...pieces, Buffer.from(`--${BOUNDARY}--\r\n`)])
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

/** An upload that the test sends piece by piece. */
export interface SlowUpload {
  readonly request: ClientRequest
  readonly answer: Promise<Answer>
  /** Resolves when the piece was handed to the socket. */
  send (piece: Buffer): Promise<void>
  end (piece?: Buffer): void
  /** Breaks the connection, as a client that is killed does. */
  leave (): void
}

export function startUpload (baseUrl: string, headers: Readonly<Record<string, string>> = {}, path = '/v1/audio/transcriptions'): SlowUpload {
  const request = httpRequest(`${baseUrl}${path}`, { method: 'POST', headers: { 'content-type': FORM_TYPE, ...headers } })
  const answer = once(request, 'response').then(async ([response]: IncomingMessage[]) => ({
    status: response!.statusCode!, headers: response!.headers, text: (await buffer(response!)).toString()
  }))
  answer.catch(() => {})
  request.on('error', () => {})
  return {
    request,
    answer,
    send: piece => new Promise(resolve => { request.write(piece, () => resolve()) }),
    end: piece => { request.end(piece) },
    leave: () => { request.destroy() }
  }
}
