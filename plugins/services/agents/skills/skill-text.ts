/** What a skill says of itself; undefined for what it does not say. */
export interface SkillText {
  readonly name?: string
  readonly description?: string
}

const HEAD = /^\uFEFF?---[ \t]*\r?\n(.*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/s
const KEY = /^(name|description):[ \t]*(.*)$/

/** Reads the head of a skill's file: YAML, of which only texts at the top level count. Pure. */
export function skillText (text: string): SkillText {
  const lines = (HEAD.exec(text)?.[1] ?? '').split(/\r?\n/)
  const told: Record<string, string> = {}
  for (const [i, line] of lines.entries()) {
    const [, key, first] = KEY.exec(line) ?? []
    if (key === undefined || Object.hasOwn(told, key)) continue
    const end = lines.findIndex((next, at) => at > i && /^\S/.test(next))
    const more = lines.slice(i + 1, end === -1 ? undefined : end).map(next => next.trim())
    const value = scalar(first!.trim(), more)
    if (value !== '') told[key] = value
  }
  return told
}

/** Lines of a text are joined, however it was written: it is shown on one. */
function scalar (first: string, more: readonly string[]): string {
  const isBlock = /^[>|][+\-\d]*(?:\s+#.*)?$/.test(first)
  const whole = [...isBlock ? [] : [first], ...more].filter(line => line !== '').join(' ')
  if (isBlock) return whole
  const [, double] = /^"((?:[^"\\]|\\.)*)"/s.exec(whole) ?? []
  if (double !== undefined) return unescaped(double)
  const [, single] = /^'((?:[^']|'')*)'/s.exec(whole) ?? []
  return single === undefined ? whole.replace(/(?:^|\s)#.*$/, '') : single.replaceAll('\'\'', '\'')
}

function unescaped (text: string): string {
  try {
    return (JSON.parse(`"${text}"`) as string).replace(/\s+/g, ' ').trim()
  } catch {
    return text
  }
}
