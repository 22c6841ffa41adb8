import { identityOf, isForeign, isPrivateBank, memoryError, type MemoryIdentity } from '../../services/memory/ref.js'
import { memoryApiError } from './errors.js'
import { checkBank } from './names.js'

/** A request about one bank. */
interface BankCall {
  readonly params: { readonly bank: string }
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
    const at = rest.indexOf('banks')
    const bank = at < 0 ? undefined : rest[at + 1]
    return bank === undefined ? { kind: 'other' } : { kind: 'bank', bank, rest: ['files'] }
  }
  return { kind: 'other' }
}

/**
 * Whether an agent may ask that. Who names no agent is the operator, and may do all but give a private bank another name.
 * Throws `memory.bank_private` and `memory.operator_only`. Pure.
 */
export function checkAccess ({ agent }: MemoryIdentity, target: EngineTarget, method: string, query: string): void {
  if (target.kind === 'bank' && target.rest[0] === 'aliases' && method === 'POST' && isPrivateBank(target.bank)) {
    throw memoryError('memory.bank_private', 'a private bank has no other name: every agent could reach it by that', { param: 'bank' })
  }
  if (target.kind === 'other') checkOperator(agent)
  if (agent === null || target.kind !== 'bank') return
  const { bank, rest } = target
  // where a clone or an import goes
  const others = [...new URLSearchParams(query)].filter(([name]) => /bank/i.test(name)).map(([, value]) => value)
  for (const name of [bank, ...others]) checkBankOf(agent, name)
  // another name for a bank would let one agent's memories land in another's
  if (rest[0] === 'aliases' && method !== 'GET') checkOperator(agent)
}

/** Throws `memory.operator_only`. Pure. */
export function checkOperator (agent: string | null): void {
  if (agent === null) return
  throw memoryApiError('memory.operator_only', 'an agent reaches its banks, and not what is about all of them; an operator does, without X-svc-Agent')
}

/** The bank of a route below `/api/memory/banks`. Throws where it is none, or belongs to another agent. Pure. */
export function enteredBank ({ params: { bank }, request: { headers } }: BankCall): string {
  checkBank(bank)
  checkBankOf(identityOf(headers).agent, bank)
  return bank
}

/** Throws `memory.bank_private`. Pure. */
export function checkBankOf (agent: string | null, bank: string): void {
  if (isForeign(agent, bank)) throw memoryError('memory.bank_private', `the bank '${bank.slice(0, 200)}' belongs to another agent`, { param: 'bank' })
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
  if (name === '.' || name === '..' || /[\\\u0000-\u001f\u007f]/.test(name)) throw strange()
  return name
}

function strange (): Error {
  return memoryApiError('memory.invalid_path', 'the path has a step up, a backslash, a control character or a broken escape in it')
}
