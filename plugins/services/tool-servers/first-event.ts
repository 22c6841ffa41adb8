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
  return isResult(parsed(json)) ? json : null
}

/** Whether a JSON value is a plain result. All else, refusals included, is for the protocol package to judge. Pure. */
export function isResult (value: unknown): boolean {
  if (!isObject(value)) return false
  const { jsonrpc, id, result } = value
  return jsonrpc === '2.0' && (typeof id === 'number' || typeof id === 'string') && isObject(result) && !('method' in value)
}

function isObject (value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parsed (json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}
