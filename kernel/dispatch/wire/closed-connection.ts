/**
 * Whether a connection may have been closed before the request came. A server may end the connection behind each event
 * stream without saying so, or for its idleness, so that the next request can be on its way into it already. A fresh connection
 * that the other side closes cleanly was closed because of the request. Pure.
 */
export function isClosed (error: Error & { code?: string, socket?: { bytesRead?: number } | null }): boolean {
  if (error.code === 'UND_ERR_SOCKET') return (error.socket?.bytesRead ?? 0) > 0
  return error.code === 'EPIPE' || error.code === 'ECONNRESET'
}
