import type { FlagGrammar } from '../../../contract/index.js'
import { flagKey, flagOf, isFlag } from './merge.js'

/** Flags of `tokens` that the gateway owns, as they were spelled. Pure. */
export function managedFlags (tokens: readonly string[], grammar: FlagGrammar = {}): string[] {
  return flagsAmong(tokens, grammar, grammar.managed ?? [])
}

/** The same for a text that wins over the slot's fields: what a field sets is not for it either. Pure. */
export function managedFlagsAboveFields (tokens: readonly string[], grammar: FlagGrammar = {}): string[] {
  return flagsAmong(tokens, grammar, [...grammar.managed ?? [], ...grammar.fields ?? []])
}

function flagsAmong (tokens: readonly string[], grammar: FlagGrammar, owned: readonly string[]): string[] {
  const names = new Set(owned)
  const isOwned = (token: string): boolean => {
    const key = flagKey(token, grammar)
    return names.has(key) || (grammar.abbreviates === true && token.startsWith('--') && owned.some(name => name.startsWith(key)))
  }
  return [...new Set(tokens.filter(token => isFlag(token) && isOwned(token)).map(flagOf))]
}
