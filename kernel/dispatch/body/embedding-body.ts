import { BodyView } from './body-view.js'
import { CLOSE_BRACKET, elementsOf, OPEN_BRACKET, QUOTE, skipSpace } from './json-scan.js'

/** Texts of one call; OpenAI's own bound for one request. */
const MOST_ELEMENTS = 2048
/** What stands around the texts: a model, a dimension, a format. */
const LONGEST_REST = 4096

/** The texts of one embedding request, as bytes of its body, and what it wants done with them. */
export interface EmbeddingTexts {
  /** Everything but the texts. Requests that agree in it may share a call. */
  readonly parameters: string
  readonly before: Buffer
  readonly after: Buffer
  /** The texts with commas between them. */
  readonly elements: Buffer
  /** Bytes of each. */
  readonly sizes: readonly number[]
}

/** Null for a body whose `input` is anything but one text or a list of them, in words or in tokens. Pure. */
export function embeddingTexts (body: Buffer): EmbeddingTexts | null {
  const view = BodyView.of(body)
  const input = typeof view === 'string' ? undefined : view.member('input')
  if (typeof view === 'string' || input === undefined || view.count('input') !== 1) return null
  const { valueStart: start, valueEnd: end } = input
  const [before, after] = [view.body.subarray(0, start), view.body.subarray(end)]
  if (before.length + after.length > LONGEST_REST) return null
  const found = textsOf(view.body, start, end)
  if (found === null) return null
  return { parameters: `${found.kind}\n${before.toString('latin1')}\n${after.toString('latin1')}`, before, after, ...found }
}

type Found = Pick<EmbeddingTexts, 'elements' | 'sizes'> & { readonly kind: 'words' | 'tokens' }

function textsOf (body: Buffer, start: number, end: number): Found | null {
  if (body[start] === QUOTE) return { kind: 'words', elements: body.subarray(start, end), sizes: [end - start] }
  if (body[start] !== OPEN_BRACKET) return null
  const first = body[skipSpace(body, start + 1)]
  if (first === CLOSE_BRACKET) return null
  // a list of numbers is the tokens of one text
  if (first !== QUOTE && first !== OPEN_BRACKET) {
    return isDigit(first) ? { kind: 'tokens', elements: body.subarray(start, end), sizes: [end - start] } : null
  }
  const places = elementsOf(body, start, MOST_ELEMENTS)
  if (places === null) return null
  const sizes: number[] = []
  for (let i = 0; i < places.length; i += 2) {
    if (body[places[i]!] !== first) return null
    sizes.push(places[i + 1]! - places[i]!)
  }
  return { kind: first === QUOTE ? 'words' : 'tokens', elements: body.subarray(start + 1, end - 1), sizes }
}

function isDigit (c: number | undefined): boolean {
  return c !== undefined && c >= 0x30 && c <= 0x39
}

/** One body for the texts of several, in their order. Pure. @param all agree in their parameters */
export function joinedBody (all: readonly EmbeddingTexts[]): Buffer {
  const parts: Buffer[] = [all[0]!.before, Buffer.from('[')]
  all.forEach(({ elements }, i) => {
    if (i > 0) parts.push(Buffer.from(','))
    parts.push(elements)
  })
  parts.push(Buffer.from(']'), all[0]!.after)
  return Buffer.concat(parts)
}

/**
 * The answer of each, cut from the one answer for all: vectors byte for byte, in the order of its texts, counted from 0.
 * Engines tell the tokens of a call and not of a text, so they are shared out by the size of the texts; the shares add
 * up. Null when the answer is not what was asked for. Pure.
 */
export function splitAnswer (answer: Buffer, all: readonly EmbeddingTexts[]): Buffer[] | null {
  const view = BodyView.of(answer)
  if (typeof view === 'string') return null
  const data = view.member('data')
  const total = all.reduce((sum, { sizes }) => sum + sizes.length, 0)
  if (data === undefined || answer[data.valueStart] !== OPEN_BRACKET) return null
  const rows = rowsByIndex(view.body, data.valueStart, total)
  if (rows === null) return null
  const usage = usageShares(view, all)
  let next = 0
  return all.map(({ sizes }, which) => {
    const own = rows.slice(next, next + sizes.length)
    next += sizes.length
    const parts: Buffer[] = []
    view.members.forEach((member, i) => {
      parts.push(Buffer.from(i === 0 ? '{' : ','), view.body.subarray(member.start, member.valueStart))
      if (member === data) parts.push(rowList(own))
      else if (member.key === 'usage' && usage !== null) parts.push(usage[which]!)
      else parts.push(view.body.subarray(member.valueStart, member.valueEnd))
    })
    return Buffer.concat([...parts, Buffer.from('}')])
  })
}

interface Row {
  readonly bytes: Buffer
  /** Where its index stands. */
  readonly start: number
  readonly end: number
}

function rowsByIndex (body: Buffer, at: number, total: number): Row[] | null {
  const places = elementsOf(body, at, total)
  if (places === null || places.length !== total * 2) return null
  const rows: Array<Row | undefined> = new Array(total).fill(undefined)
  for (let i = 0; i < places.length; i += 2) {
    const row = BodyView.of(body.subarray(places[i]!, places[i + 1]!))
    const member = typeof row === 'string' ? undefined : row.member('index')
    if (typeof row === 'string' || member === undefined) return null
    const index = Number(row.body.toString('latin1', member.valueStart, member.valueEnd))
    if (!Number.isInteger(index) || index < 0 || index >= total || rows[index] !== undefined) return null
    rows[index] = { bytes: row.body, start: member.valueStart, end: member.valueEnd }
  }
  return rows as Row[]
}

function rowList (rows: readonly Row[]): Buffer {
  const parts: Buffer[] = []
  rows.forEach(({ bytes, start, end }, i) => {
    parts.push(Buffer.from(i === 0 ? '[' : ','), bytes.subarray(0, start), Buffer.from(String(i)), bytes.subarray(end))
  })
  return Buffer.concat([...parts, Buffer.from(']')])
}

/** Null when the answer counts no tokens. */
function usageShares (view: BodyView, all: readonly EmbeddingTexts[]): Buffer[] | null {
  const member = view.member('usage')
  if (member === undefined) return null
  let usage: unknown
  try {
    usage = JSON.parse(view.body.toString('utf8', member.valueStart, member.valueEnd))
  } catch {
    return null
  }
  if (typeof usage !== 'object' || usage === null) return null
  const weights = all.map(({ elements }) => elements.length)
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  let before = 0
  return weights.map(weight => {
    const [from, to] = [before / whole, (before + weight) / whole]
    before += weight
    const share = (value: unknown): unknown =>
      typeof value === 'number' && Number.isInteger(value) ? Math.round(value * to) - Math.round(value * from) : value
    return Buffer.from(JSON.stringify(Object.fromEntries(Object.entries(usage).map(([key, value]) => [key, share(value)]))))
  })
}
