/**
 * How deep the values of an archive nest at most: they are written by recursion, and the database reads what nests 1,000 deep,
 * with all that it stands in.
 */
export const DEEPEST = 900

const [QUOTE, ESCAPE, COMMA, LIST, LIST_END, MAP, MAP_END] =
  Buffer.from('"\\,[]{}') as unknown as [number, number, number, number, number, number, number]

/** How many values a JSON text holds, or a few more, and how deep they nest: found before it is read. Pure. */
export function jsonSize (json: Buffer): { readonly values: number, readonly depth: number } {
  let [values, depth, deepest] = [1, 0, 0]
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!
    if (byte === QUOTE) {
      for (at++; at < json.length && json[at] !== QUOTE; at++) if (json[at] === ESCAPE) at++
    } else if (byte === COMMA) values++
    else if (byte === LIST || byte === MAP) {
      values++
      depth++
      if (depth > deepest) deepest = depth
    } else if (byte === LIST_END || byte === MAP_END) depth--
  }
  return { values, depth: deepest }
}
