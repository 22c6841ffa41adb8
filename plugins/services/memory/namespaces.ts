import { memoryError } from './errors.js'
import type { MemoryIdentity } from './identity.js'

/** Where memories go, as clients name it, and the bank of the engine that it is. */
export interface Dataset {
  /** `shared`, `agents`, `project:<id>`, `private:<agent>` */
  readonly name: string
  /** The same with `__` for the colon, which is in no path. */
  readonly bank: string
  /** The one agent that may see it; null for all. */
  readonly owner: string | null
}

const NAME = /^(?:shared|agents|(project|private):([A-Za-z0-9_-]{1,64}))$/
const PRIVATE_BANK = /^private__(.*)$/s
const SHARED = 'shared'

/** Null for a name that is none of the closed set. Pure. */
export function datasetOf (name: string): Dataset | null {
  const [, kind, id] = NAME.exec(name) ?? []
  if (kind === undefined) return name === SHARED || name === 'agents' ? { name, bank: name, owner: null } : null
  return { name, bank: `${kind}__${id!}`, owner: kind === 'private' ? id! : null }
}

/** A bank as clients of the provider routes name it. */
export function datasetName (bank: string): string {
  return bank.replace(/^(project|private)__/, '$1:')
}

/** Where a write goes: in private mode to the agent's own, whatever is asked for. Throws `memory.namespace_invalid`. Pure. */
export function writtenDataset (identity: MemoryIdentity, asked: string | undefined): Dataset {
  if (identity.private) return own(identity)
  return publicDataset(asked ?? SHARED)
}

/**
 * What a read looks at: of a list those that there are, of a single name that one. Without a name what is shared, and in
 * private mode what is the agent's own. Throws `memory.namespace_invalid` for a single name that cannot be read. Pure.
 */
export function readDatasets (identity: MemoryIdentity, asked: string | readonly string[] | undefined): readonly Dataset[] {
  const standard = [datasetOf(SHARED)!, ...identity.private ? [own(identity)] : []]
  if (asked === undefined) return standard
  if (typeof asked === 'string') return [readable(identity, asked) ?? publicDataset(asked)]
  const found = asked.map(name => readable(identity, name)).filter(one => one !== null)
  return found.filter((one, i) => found.findIndex(other => other.bank === one.bank) === i)
}

/**
 * Whether a bank, by its name in the engine, belongs to another agent. A caller that names no agent is the operator, to whom
 * every bank is open. Pure.
 */
export function isForeign (agent: string | null, bank: string): boolean {
  const [, owner] = PRIVATE_BANK.exec(bank) ?? []
  return agent !== null && owner !== undefined && owner !== agent
}

/** Throws `memory.bank_private`. Pure. */
export function checkBankOf (agent: string | null, bank: string): void {
  if (isForeign(agent, bank)) throw memoryError('memory.bank_private', `the bank '${bank.slice(0, 200)}' belongs to another agent`, { param: 'bank' })
}

/** Whether a bank, by its name in the engine, is one agent's alone. Pure. */
export function isPrivateBank (bank: string): boolean {
  return PRIVATE_BANK.test(bank)
}

function readable (identity: MemoryIdentity, name: string): Dataset | null {
  const dataset = datasetOf(name)
  if (dataset === null || dataset.owner === null) return dataset
  return identity.private && dataset.owner === identity.agent ? dataset : null
}

function publicDataset (name: string): Dataset {
  const dataset = datasetOf(name)
  if (dataset === null) {
    throw memoryError('memory.namespace_invalid', `there is no dataset '${name.slice(0, 100)}'; there are shared, agents, project:<id> and, with X-svc-Private, private:<own name>`, { param: 'dataset' })
  }
  if (dataset.owner !== null) {
    throw memoryError('memory.namespace_invalid', `'${name}' belongs to one agent; that agent reaches it with the header X-svc-Private: 1`, { param: 'dataset' })
  }
  return dataset
}

function own ({ agent }: MemoryIdentity): Dataset {
  return datasetOf(`private:${agent ?? ''}`)!
}
