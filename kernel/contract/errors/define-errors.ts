import { ERRORS_BRAND } from '../brand.js'
import type { ErrorRow } from './error-codes.js'
import { SvcError, type SvcErrorOptions } from './errors.js'

/** What a route refuses a query or a body with, where the code is one of a plugin's own. */
export interface ErrorKind extends Pick<ErrorRow, 'status' | 'heals'> {
  readonly code: string
}

/** The error codes of a plugin: a function that makes errors of them, and the table. */
export interface PluginErrors<C extends string = string> {
  (code: C, message: string, options?: SvcErrorOptions): SvcError
  /** What all of its codes begin with, before the first dot. */
  readonly domain: string
  /** By the whole code. */
  readonly rows: Readonly<Record<C, ErrorRow>>
  /** For `queryError`, `bodyError` and `unreadableBody` of a route. */
  kind (code: C): ErrorKind
}

const DOMAIN = /^[a-z][a-z0-9_]*$/
const NAME = /^[a-z0-9_]+(?:\.[a-z0-9_]+)*$/

/**
 * Error codes that a plugin brings. The plugin lists what this returns in its `errors`, and calls it to make what it throws:
 * the status comes from the table, and a code that is not in it does not compile.
 * @param domain what the codes begin with; in a package the plugin's own name, with underscores
 * @param rows by the rest of the code: `too_long`, `import.no_name`
 * @throws TypeError when a code, a status or a condition cannot be one.
 */
export function defineErrors<const D extends string, const R extends Readonly<Record<string, ErrorRow>>> (
  domain: D, rows: R
): PluginErrors<`${D}.${keyof R & string}`> {
  type Code = `${D}.${keyof R & string}`
  if (!DOMAIN.test(domain)) throw new TypeError(`'${domain}' cannot begin an error code: write it in lower case, with underscores`)
  for (const [name, row] of Object.entries(rows)) checkRow(`${domain}.${name}`, name, row)
  const table = Object.freeze(Object.fromEntries(Object.entries(rows).map(([name, row]) => [`${domain}.${name}`, row]))) as Readonly<Record<Code, ErrorRow>>
  const rowOf = (code: Code): ErrorRow => {
    if (!Object.hasOwn(table, code)) throw new TypeError(`'${code}' is not an error code of '${domain}'; there are ${Object.keys(table).join(', ')}`)
    return table[code]
  }
  const make = (code: Code, message: string, options: SvcErrorOptions = {}): SvcError => {
    const { status, heals = false } = rowOf(code)
    return new SvcError(code, status, message, { heals, ...options })
  }
  const kind = (code: Code): ErrorKind => ({ code, ...rowOf(code) })
  return Object.freeze(Object.assign(make, { domain, rows: table, kind, [ERRORS_BRAND]: true }))
}

export function isPluginErrors (value: unknown): value is PluginErrors {
  return typeof value === 'function' && (value as unknown as Record<symbol, unknown>)[ERRORS_BRAND] === true
}

function checkRow (code: string, name: string, { status, when }: ErrorRow): void {
  if (!NAME.test(name)) throw new TypeError(`'${code}' cannot be an error code: write it in lower case, with underscores and dots`)
  if (!Number.isInteger(status) || status < 400 || status > 599) throw new TypeError(`error code '${code}' has status ${status}: give it one from 400 to 599`)
  if (typeof when !== 'string' || when === '') throw new TypeError(`error code '${code}' does not say when it happens: fill in \`when\``)
}
