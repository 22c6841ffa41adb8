/** The whole number that a file of a driver holds, or null when it holds anything else. Pure. */
export function numberBetween (text: string | null, least: number, most: number): number | null {
  if (text === null || !/^-?\d{1,18}$/.test(text)) return null
  const value = Number(text)
  return value >= least && value <= most ? value : null
}
