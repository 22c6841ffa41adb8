let segmenter: Intl.Segmenter | null = null
/** Made when a text needs it, which takes longer than all else that a command loads. */
const graphemes = (text: string): Intl.Segments => (segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' })).segment(text)
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const INVISIBLE = /^[\p{M}\p{Cf}]+$/u
/** One column each: nearly every name. The segmenter takes a microsecond for each character. */
const PLAIN = /^[ -~]*$/
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g
const CONTROL_BUT_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Columns that the text takes in a terminal. */
export function textWidth (text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes(text)) width += segmentWidth(segment)
  return width
}

/** At most `width` columns, cut between characters, with an ellipsis where something is left out. */
export function truncate (text: string, width: number): string {
  if (textWidth(text) <= width) return text
  if (PLAIN.test(text)) return width < 1 ? '' : `${text.slice(0, width - 1)}…`
  let kept = ''
  let used = 0
  for (const { segment } of graphemes(text)) {
    used += segmentWidth(segment)
    if (used > width - 1) break
    kept += segment
  }
  return width < 1 ? '' : `${kept}…`
}

/** Lines of at most `width` columns, broken between words; a word that is wider has a line of its own and is not cut. */
export function foldLines (text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && textWidth(last) + 1 + textWidth(word) <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

export function padTo (text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)))
}

/** On one line and without control characters: what comes from elsewhere must not steer the terminal. */
export function oneLine (text: string): string {
  return text.replace(CONTROL, ' ').trim()
}

/** Line feeds and tabs stay; every other control character goes, escape sequences with them. */
export function harmless (text: string): string {
  return text.replace(CONTROL_BUT_LINES, '')
}

function segmentWidth (segment: string): number {
  if (INVISIBLE.test(segment)) return 0
  return WIDE.test(segment) ? 2 : 1
}
