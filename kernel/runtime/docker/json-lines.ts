import { StringDecoder } from 'node:string_decoder'

/** An answer without line ends is no stream of objects; it is given up at this size. */
const MAX_OBJECT_LENGTH = 4 * 1024 * 1024

/** The JSON objects of a stream, one a line as container engines send them. What is no object is passed over. */
export async function* jsonLines (stream: AsyncIterable<Buffer | string>): AsyncIterable<Readonly<Record<string, unknown>>> {
  const decoder = new StringDecoder('utf8')
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + (typeof chunk === 'string' ? chunk : decoder.write(chunk))).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > MAX_OBJECT_LENGTH) throw new Error('the container engine sent an endless line')
    for (const line of lines) yield* parsed(line)
  }
  yield* parsed(rest + decoder.end())
}

function* parsed (line: string): Iterable<Readonly<Record<string, unknown>>> {
  if (line.trim() === '') return
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return // half a line of a connection that broke
  }
  if (typeof value === 'object' && value !== null) yield value as Readonly<Record<string, unknown>>
}
