import {
  checkBankOf, identityOf, isForeign, isPrivateBank, memoryError, type MemoryIdentity, type MemoryService
} from '../../services/memory/ref.js'
import { memoryApiError } from './errors.js'
import { checkBank } from './names.js'

/** A request about one bank. */
interface BankCall {
  readonly params: { readonly bank: string }
  readonly signal: AbortSignal
  readonly request: { readonly headers: Parameters<typeof identityOf>[0] }
}

/** What a request to the engine itself is about. */
export type EngineTarget =
  /** The engine as such, which tells of no memory. */
  | { readonly kind: 'open' }
  /** The list of banks. */
  | { readonly kind: 'banks' }
  | { readonly kind: 'bank', readonly bank: string, readonly rest: readonly string[] }
  /** A chunk: the bank is in its answer. */
  | { readonly kind: 'chunk' }
  /** All the rest: an operator's. */
  | { readonly kind: 'other' }

const OPEN = new Set(['/health', '/health/live', '/health/ready', '/version', '/metrics', '/openapi.json', '/v1/bank-template-schema'])

/**
 * What a path of the engine means, as the engine reads it. Throws `memory.invalid_path` for one that a server or proxy
 * behind could read in another way. Pure.
 */
export function targetOf (path: string): EngineTarget {
  const segments = path.split('/').slice(1).map(decoded)
  if (OPEN.has(path)) return { kind: 'open' }
  const [version, tenant, what, ...rest] = segments
  if (version !== 'v1' || tenant !== 'default') return { kind: 'other' }
  if (what === 'banks') {
    const [bank = '', ...below] = rest
    if (bank !== '') return { kind: 'bank', bank, rest: below }
    return rest.length <= 1 ? { kind: 'banks' } : { kind: 'other' }
  }
  if (what === 'chunks') return { kind: 'chunk' }
  if (what === 'files') {
    // a client may send the key, which has slashes, as one segment
    const key = rest.join('/').split('/')
    const banks = key.filter((_, i) => key[i - 1] === 'banks')
    return banks.length === 1 ? { kind: 'bank', bank: banks[0]!, rest: ['files'] } : { kind: 'other' }
  }
  return { kind: 'other' }
}

/**
 * Whether an agent may ask that. Without an agent it is the operator, who may do all but give a private bank another name.
 * Throws `memory.bank_private` and `memory.operator_only`. Pure.
 */
export function checkAccess ({ agent }: MemoryIdentity, target: EngineTarget, method: string, query: string): void {
  if (target.kind === 'bank' && target.rest[0] === 'aliases' && method === 'POST' && isPrivateBank(target.bank)) {
    throw memoryError('memory.bank_private', 'a private bank cannot have another name: every agent could use that name', { param: 'bank' })
  }
  if (target.kind === 'other') checkOperator(agent)
  if (agent === null || target.kind !== 'bank') return
  for (const name of banksOf(target, query)) checkBankOf(agent, name)
  // another name for a bank would let one agent's memories land in another's
  const setsAliases = target.rest[0] === 'aliases' && method !== 'GET'
  if (setsAliases || new URLSearchParams(query).has('include_aliases')) checkOperator(agent)
}

/** All banks that a request is about: where a clone or an import goes as well. Pure. */
export function banksOf (target: EngineTarget, query: string): readonly string[] {
  const others = [...new URLSearchParams(query)].filter(([name]) => /bank/i.test(name)).map(([, value]) => value)
  return target.kind === 'bank' ? [target.bank, ...others] : others
}

/** Throws `memory.operator_only`. Pure. */
export function checkOperator (agent: string | null): void {
  if (agent === null) return
  throw memoryApiError('memory.operator_only', 'an agent may only use its own banks; calls about all banks are for an operator, without X-svc-Agent')
}

/** The bank of a route below `/api/memory/banks`. Rejects where it is none, or belongs to another agent. */
export async function enteredBank (
  memory: MemoryService, { params: { bank }, signal, request: { headers } }: BankCall
): Promise<string> {
  checkBank(bank)
  const { agent } = identityOf(headers)
  checkBankOf(agent, bank)
  await memory.enter(agent, bank, signal)
  return bank
}

/** A list of banks without those of other agents. Pure. */
export function seenBanks (list: object, agent: string | null): object {
  const { banks, total } = list as { readonly banks?: unknown, readonly total?: unknown }
  if (agent === null || !Array.isArray(banks)) return list
  const seen = banks.filter(row => !isForeign(agent, String((row as { readonly bank_id?: unknown } | null)?.bank_id ?? '')))
  return { ...list, banks: seen, ...typeof total === 'number' ? { total: total - (banks.length - seen.length) } : {} }
}

function decoded (segment: string): string {
  let name: string
  try {
    name = decodeURIComponent(segment)
  } catch {
    throw strange()
  }
  if (name.split('/').some(part => part === '.' || part === '..') || /[\\\u0000-\u001f\u007f]/.test(name)) throw strange()
  return name
}

function strange (): Error {
  return memoryApiError('memory.invalid_path', 'the path contains `..`, a backslash, a control character or an invalid escape')
}
