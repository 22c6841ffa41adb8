/** Whether `text` fits a pattern with `*` (any run of characters, also none) and `?` (one). Linear in practice, pure. */
export function matchesGlob (pattern: string, text: string): boolean {
  let p = 0
  let t = 0
  let star = -1
  let resume = 0
  while (t < text.length) {
    const wanted = pattern[p]
    if (wanted === '*') {
      star = p++
      resume = t
    } else if (wanted === '?' || wanted === text[t]) {
      p++
      t++
    } else if (star === -1) {
      return false
    } else {
      // let the last star take one more character and try again behind it
      p = star + 1
      t = ++resume
    }
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
