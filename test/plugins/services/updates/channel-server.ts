import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

export interface ChannelServer {
  readonly url: string
  /** What was asked for, with its query. */
  readonly asked: string[]
  /** What is at each path; a string or bytes are sent as they are, with ranges. */
  readonly files: Map<string, string | Buffer | Answer>
}

/** A folder of releases on the web. */
export async function channelServer (t: Test): Promise<ChannelServer> {
  const asked: string[] = []
  const files: ChannelServer['files'] = new Map()
  const server = createServer((request, response) => {
    asked.push(request.url!)
    const file = files.get(request.url!) ?? files.get(request.url!.split('?')[0]!)
    if (file === undefined) response.writeHead(404).end('nothing here')
    else if (typeof file === 'function') file(request, response)
    else send(Buffer.from(file), request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, files }
}

/** All of it, or from the byte that is asked for. */
export function send (bytes: Buffer, { headers }: IncomingMessage, response: ServerResponse): void {
  const [, first] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? []
  const from = Number(first ?? 0)
  if (first === undefined) response.writeHead(200, { 'content-length': bytes.length, 'etag': '"one"' })
  else response.writeHead(206, { 'content-length': bytes.length - from, 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}`, 'etag': '"one"' })
  response.end(bytes.subarray(from))
}

/** What a channel says, all of it. */
export function manifestText (fields: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    _schema: 'svc.releases.v1', version: '99.0.0', channel: 'stable', url: 'svc-99.0.0.tar.gz', bundle_url: 'svc-99.0.0.bundle.json',
    digest_sha256: 'a'.repeat(64), ...fields
  })
}
