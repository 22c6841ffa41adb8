import type { Command } from 'commander'

/** Where a gateway listens that was not told otherwise. */
export const DEFAULT_BASE = 'http://127.0.0.1:8080'

/** A value of the command line, or of the environment where the command line has none. */
export interface Named {
  readonly value: string
  readonly by: 'option' | 'variable'
}

export interface Asked {
  readonly url: Named | null
  readonly home: Named | null
}

/**
 * What a command works with. A gateway that is named with a home of the same rank must run on that home. Without any
 * name it is the system's home.
 */
export type Target =
  | { readonly kind: 'gateway', readonly url: string, readonly home: string | null }
  | { readonly kind: 'home', readonly home: string }
  | { readonly kind: 'system' }

/** An option wins over a variable; a URL over a home that is named the same way. Pure. */
export function targetOf ({ url, home }: Asked): Target {
  if (url !== null && home !== null && url.by !== home.by) {
    return url.by === 'option' ? { kind: 'gateway', url: url.value, home: null } : { kind: 'home', home: home.value }
  }
  if (url !== null) return { kind: 'gateway', url: url.value, home: home?.value ?? null }
  return home === null ? { kind: 'system' } : { kind: 'home', home: home.value }
}

/** What a command line asks for. Empty names are none. */
export function askedBy (command: Command, env: Readonly<Record<string, string | undefined>>): Asked {
  const { url, home } = command.optsWithGlobals<{ url?: string, home?: string }>()
  return {
    url: named(url, command.getOptionValueSourceWithGlobals('url')),
    home: named(home ?? env.SVC_HOME, home === undefined ? 'env' : command.getOptionValueSourceWithGlobals('home'))
  }
}

function named (value: string | undefined, source: string | undefined): Named | null {
  return value === undefined || value === '' ? null : { value, by: source === 'env' ? 'variable' : 'option' }
}
