import { StringDecoder } from 'node:string_decoder'

/** Longer lines are handed on in pieces of this many characters, so that one endless line cannot fill the memory. */
export const MAX_LINE_LENGTH = 16_384

export interface LineSplitter {
  /** The lines that these bytes complete. */
  push (chunk: Buffer): string[]
  /** What is left after the last line end; empty when the text ended with one. */
  end (): string[]
}

/** Bytes to lines. Characters and line ends may lie across chunks; `\n` and `\r\n` end a line. */
export function createLineSplitter (maxLength: number = MAX_LINE_LENGTH): LineSplitter {
  const decoder = new StringDecoder('utf8')
  let rest = ''

  function take (text: string): string[] {
    const lines: string[] = []
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    for (const part of parts) lines.push(...pieces(part.endsWith('\r') ? part.slice(0, -1) : part, maxLength))
    if (rest.length > maxLength) {
      const cut = pieces(rest, maxLength)
      rest = cut.pop() ?? ''
      lines.push(...cut)
    }
    return lines
  }

  return {
    push: chunk => take(decoder.write(chunk)),
    end () {
      const lines = take(decoder.end())
      if (rest !== '') lines.push(rest.endsWith('\r') ? rest.slice(0, -1) : rest)
      rest = ''
      return lines
    }
  }
}

/** Never cuts between the two halves of a surrogate pair. */
function pieces (line: string, maxLength: number): string[] {
  if (line.length <= maxLength) return [line]
  const result: string[] = []
  let start = 0
  while (line.length - start > maxLength) {
    const last = line.charCodeAt(start + maxLength - 1)
    const length = last >= 0xD800 && last <= 0xDBFF ? maxLength - 1 : maxLength
    result.push(line.slice(start, start + length))
    start += length
  }
  result.push(line.slice(start))
  return result
}
