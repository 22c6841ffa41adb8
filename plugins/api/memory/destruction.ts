/** What is gone after a request, for audit rows. */
export interface Destruction {
  readonly action: string
  /** `bank` or `bank/id`. */
  readonly target: string
  /** It is only begun when the engine answers, which then names its operation. */
  readonly goesOn?: true
}

// not an object: a client may name a part `constructor`
const byPart: ReadonlyMap<string, string> = new Map(Object.entries({
  'config': 'memory.bank_config.delete',
  'memories': 'memory.memories.delete',
  'observations': 'memory.observations.delete',
  'documents': 'memory.document.delete',
  'directives': 'memory.directive.delete',
  'operations': 'memory.operation.delete',
  'mental-models': 'memory.mental_model.delete',
  'aliases': 'memory.alias.delete',
  'webhooks': 'memory.webhook.delete',
  'knowledge-base': 'memory.knowledge_node.delete'
}))

/** Where the part does not say it. */
const byVerb: Readonly<Record<string, string>> = {
  'POST mental-models clear': 'memory.mental_model.clear',
  // takes back the observations of a consolidation
  'POST operations undo': 'memory.operation.undo',
  // those that were made from one memory, which stays
  'DELETE memories observations': 'memory.observations.delete'
}

/** What a request below a bank destroys; null for one that destroys nothing. Pure. */
export function destructionOf (method: string, bank: string, rest: readonly string[], query = ''): Destruction | null {
  const [part, ...names] = rest.filter(name => name !== '')
  const action = byVerb[`${method} ${part ?? ''} ${names[1] ?? ''}`]
  if (action !== undefined) return { action, target: `${bank}/${names[0]!}`.slice(0, 300) }
  const replaced = method === 'POST' ? replacedIn(bank, part, names, new URLSearchParams(query)) : null
  if (replaced !== null) return { action: 'memory.documents.replace', target: replaced, goesOn: true }
  if (method !== 'DELETE') return null
  if (part === undefined) return { action: 'memory.bank.delete', target: bank }
  return { action: byPart.get(part) ?? `memory.${part.replaceAll(/[^a-z]/g, '_').slice(0, 40)}.delete`, target: [bank, ...names].join('/').slice(0, 300) }
}

/** The bank whose documents an import takes the place of; null for what is no such import. Pure. */
function replacedIn (bank: string, part: string | undefined, [name]: readonly string[], query: URLSearchParams): string | null {
  // of a name that is repeated, engines read one or the other
  const says = (name: string, value: string): boolean => query.getAll(name).includes(value)
  if (part === 'document-transfer' && name === undefined) return says('on_conflict', 'replace') ? bank : null
  if (part !== 'transfer' || name !== 'import' || !says('document_conflict', 'replace') || !says('mode', 'merge')) return null
  return query.get('target_bank_id') ?? bank
}
