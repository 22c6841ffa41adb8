import { svcError } from 'svc-gateway/plugin'

/** A whole body. Throws `dispatch.upstream_failed` for one that is larger. */
export async function bounded (body: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limitBytes) throw svcError('dispatch.upstream_failed', `the answer is larger than ${limitBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
