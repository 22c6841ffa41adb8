/**
 * The JSON of an answer that a piece of an event stream begins with; null when it begins with anything else, or not all of it
 * is there. Pure.
 */
export function answerIn (piece: Buffer): string | null {
  const text = piece.toString('utf8')
  const end = /\r?\n\r?\n/.exec(text)
  if (end === null) return null
  const data: string[] = []
  for (const line of text.slice(0, end.index).split(/\r?\n/)) {
    const [, name, value] = /^([a-z]*): ?(.*)$/.exec(line) ?? []
    if (name === 'data') data.push(value!)
    else if (name === 'event' && value !== 'message') return null
  }
  const json = data.join('\n')
  return isAnswer(json) ? json : null
}

function isAnswer (json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null && ('result' in value || 'error' in value) && 'id' in value && !('method' in value)
  } catch {
    return false
  }
}
