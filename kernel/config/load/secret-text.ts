/** Shorter values are words of any language: taking them out would hide half of a log and no secret. */
const LEAST_LENGTH = 6
const HIDDEN = '***'

/** Replaces the values of secrets in texts. Also finds them as URLs and JSON write them. Pure. */
export function secretCleaner (values: Iterable<string>): (text: string) => string {
  const forms = new Set([...values].filter(value => value.length >= LEAST_LENGTH).flatMap(formsOf))
  if (forms.size === 0) return text => text
  // the longest first: one secret may begin with another. No pattern: an expression of some ten thousand characters throws
  const longestFirst = [...forms].sort((a, b) => b.length - a.length)
  return text => longestFirst.reduce((rest, form) => rest.length < form.length ? rest : rest.replaceAll(form, HIDDEN), text)
}

function formsOf (value: string): readonly string[] {
  const form = new URLSearchParams({ v: value }).toString().slice('v='.length)
  return [value, encodeURIComponent(value), form, JSON.stringify(value).slice(1, -1)]
}
