export interface ServerEvent {
  /** `message` when the server names none. */
  readonly event: string
  readonly data: string
  readonly id: string | null
}

/**
 * Takes an event stream apart as the HTML standard says: any line end, comments left out, data lines joined, chunks cut
 * anywhere, also inside of a character. An event without its blank line at the end of the stream was never finished and
 * is dropped.
 */
export async function* readServerEvents (chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  const fields = new EventFields()
  let rest = ''
  for await (const chunk of chunks) {
    const { lines, rest: open } = splitLines(rest + decoder.decode(chunk, { stream: true }))
    rest = open
    for (const line of lines) {
      const event = fields.take(line)
      if (event !== null) yield event
    }
  }
  // a lone carriage return was held back: it might have been half of a line end
  const last = rest.endsWith('\r') ? fields.take(rest.slice(0, -1)) : null
  if (last !== null) yield last
}

/** A carriage return at the very end stays in the rest: its line feed may be in the next chunk. */
function splitLines (text: string): { readonly lines: readonly string[], readonly rest: string } {
  const lines: string[] = []
  let from = 0
  for (const match of text.matchAll(/\r\n|\n|\r(?=[^])/g)) {
    lines.push(text.slice(from, match.index))
    from = match.index + match[0].length
  }
  return { lines, rest: text.slice(from) }
}

class EventFields {
  #event = ''
  #data: string[] = []
  #id: string | null = null

  /** The event that this line ends, or null. */
  take (line: string): ServerEvent | null {
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    if (colon === 0) return null
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (field === 'event') this.#event = value
    else if (field === 'data') this.#data.push(value)
    else if (field === 'id') this.#id = value
    return null
  }

  #dispatch (): ServerEvent | null {
    const data = this.#data
    const event = this.#event
    this.#data = []
    this.#event = ''
    return data.length === 0 ? null : { event: event === '' ? 'message' : event, data: data.join('\n'), id: this.#id }
  }
}
