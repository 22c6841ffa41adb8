/** One `{{ }}`, `{% %}` or `{# #}` of a template. Lines count from 1. */
export interface Tag {
  readonly kind: 'expression' | 'statement' | 'comment'
  readonly line: number
  /** First word of a statement: `if`, `endif`, `set`, ... */
  readonly keyword: string
  /** False for one that the template ends in. */
  readonly closed: boolean
}

const kinds = { '{': 'expression', '%': 'statement', '#': 'comment' } as const
const opens: Readonly<Record<string, string>> = {
  endif: 'if', endfor: 'for', endmacro: 'macro', endcall: 'call', endfilter: 'filter', endset: 'set'
}

/**
 * The tags of a template, in order, with the lines they begin in: the parser keeps none. The parser never sees the
 * `generation` tags, so they are left out here too. Pure.
 */
export function tagsOf (source: string): readonly Tag[] {
  const tags: Tag[] = []
  let at = 0
  for (;;) {
    const open = nextOpen(source, at)
    if (open === -1) return tags
    const kind = kinds[source[open + 1] as keyof typeof kinds]
    const end = kind === 'comment' ? afterText(source, open + 2, '#}') : afterCode(source, open + 2, kind === 'statement' ? '%}' : '}}')
    const body = source.slice(open + 2, end ?? source.length)
    const keyword = kind === 'statement' ? /^[-+]?\s*(\w*)/.exec(body)![1]! : ''
    if (keyword !== 'generation' && keyword !== 'endgeneration') {
      tags.push({ kind, line: lineAt(source, open), keyword, closed: end !== null })
    }
    if (end === null) return tags
    at = end
  }
}

/** The innermost statement that is never closed, or null. A `set` with a value needs no end. Pure. */
export function unclosed (source: string): Tag | null {
  const stack: Tag[] = []
  for (const tag of tagsOf(source)) {
    if (!tag.closed) return tag
    if (Object.values(opens).includes(tag.keyword)) stack.push(tag)
    const opened = opens[tag.keyword]
    if (opened === undefined) continue
    const at = stack.map(({ keyword }) => keyword).lastIndexOf(opened)
    if (at !== -1) stack.splice(at)
  }
  return stack.filter(({ keyword }) => keyword !== 'set').at(-1) ?? null
}

export function lineAt (source: string, index: number): number {
  let line = 1
  for (let i = source.indexOf('\n'); i !== -1 && i < index; i = source.indexOf('\n', i + 1)) line++
  return line
}

function nextOpen (source: string, from: number): number {
  for (let at = source.indexOf('{', from); at !== -1; at = source.indexOf('{', at + 1)) {
    if (source[at + 1]! in kinds) return at
  }
  return -1
}

function afterText (source: string, from: number, close: string): number | null {
  const at = source.indexOf(close, from)
  return at === -1 ? null : at + close.length
}

/** Past the end of the tag: quoted text and the braces of object literals are not it. */
function afterCode (source: string, from: number, close: string): number | null {
  let depth = 0
  for (let at = from; at < source.length; at++) {
    const c = source[at]!
    if (depth === 0 && source.startsWith(close, at)) return at + close.length
    if (c === '{') depth++
    else if (c === '}') depth = Math.max(0, depth - 1)
    else if (c === '"' || c === '\'') {
      while (++at < source.length && source[at] !== c) if (source[at] === '\\') at++
    }
  }
  return null
}
