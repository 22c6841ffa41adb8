/** What is gone after a request, for audit rows. */
export interface Destruction {
  readonly action: string
  /** `bank` or `bank/id`. */
  readonly target: string
}

const byPart: Readonly<Record<string, string>> = {
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
}

/** What a request below a bank destroys; null for one that destroys nothing. Pure. */
export function destructionOf (method: string, bank: string, rest: readonly string[]): Destruction | null {
  const [part, ...names] = rest.filter(name => name !== '')
  if (method === 'POST' && part === 'mental-models' && names[1] === 'clear') {
    return { action: 'memory.mental_model.clear', target: `${bank}/${names[0]!}` }
  }
  if (method !== 'DELETE') return null
  if (part === undefined) return { action: 'memory.bank.delete', target: bank }
  return { action: byPart[part] ?? `memory.${part.replaceAll(/[^a-z]/g, '_').slice(0, 40)}.delete`, target: [bank, ...names].join('/').slice(0, 300) }
}
