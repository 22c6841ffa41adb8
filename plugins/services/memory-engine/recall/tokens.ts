/** About a quarter of the characters. Pure. */
export function tokensIn (characters: number): number {
  return Math.ceil(characters / 4)
}

/** Of a text. Pure. */
export function tokensOf (text: string): number {
  return tokensIn(text.length)
}
