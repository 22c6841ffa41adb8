import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorEnvelope, retryHeader, svcError, type Logger, type SvcError } from '../../contract/index.js'
import { requestIdOf } from './request-id.js'

/** A request that the HTTP parser gave up on: no route, no hook and no reply ever sees it. */
export function answerParserError (error: NodeJS.ErrnoException, socket: Duplex, log: Logger): void {
  // the client is gone, or an answer has begun: nothing that is written now could be read as one
  if (error.code === 'ECONNRESET' || !socket.writable || hasAnswer(socket)) {
    socket.destroy()
    return
  }
  const requestId = requestIdOf({ headers: {} })
  log.debug({ request_id: requestId, code: error.code }, 'a client sent something that is not an HTTP request')
  const refusal = refusalOf(error.code)
  const body = JSON.stringify(errorEnvelope(refusal, requestId))
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ''}\r\n` +
    'content-type: application/json; charset=utf-8\r\n' +
    `content-length: ${Buffer.byteLength(body)}\r\n` +
    `x-request-id: ${requestId}\r\n` +
    `${(retryHeader(refusal) ?? ['x-should-retry', 'true']).join(': ')}\r\n` +
    `connection: close\r\n\r\n${body}`)
}

/** Node keeps the answer that is being written on the socket. */
function hasAnswer (socket: Duplex): boolean {
  const { _httpMessage: answer } = socket as { readonly _httpMessage?: { readonly headersSent: boolean } | null }
  return answer?.headersSent === true
}

function refusalOf (code: string | undefined): SvcError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return svcError('request.headers_too_large', 'the address and headers of the request are larger than 16 KiB together; send fewer or shorter ones')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return svcError('request.too_large', 'the chunk extensions of the body are too large; send the body without them')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return svcError('request.timeout', 'the headers of the request took too long to arrive; send them at once')
    default:
      return svcError('request.malformed', `this is not an HTTP request (${code ?? 'unknown'}); this address speaks plain HTTP`)
  }
}
