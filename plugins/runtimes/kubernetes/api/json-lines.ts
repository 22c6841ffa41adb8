/** More than any object of a cluster. */
const LONGEST_LINE = 8 * 1024 * 1024
const NEWLINE = 0x0A

/** A value from each line. Throws for a line that is no JSON or has no end; what is left of one at the end was cut off. */
export async function* jsonLines (body: AsyncIterable<unknown>): AsyncIterable<unknown> {
  let parts: Buffer[] = []
  let size = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]).toString('utf8')
      from = end + 1
      parts = []
      size = 0
      if (line !== '') yield JSON.parse(line)
    }
    size += chunk.length - from
    if (size > LONGEST_LINE) throw new Error(`a line is longer than ${LONGEST_LINE} bytes`)
    if (from < chunk.length) parts.push(chunk.subarray(from))
  }
}
