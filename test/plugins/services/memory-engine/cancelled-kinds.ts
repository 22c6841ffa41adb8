import type { Store } from '../../../../plugins/services/memory-engine/store/store.js'
import type { Wire } from './support.js'

type Ask = (method: string, target: string, body?: object) => Promise<Record<string, string>>

/** Has every try to keep the document `later` fail, so that its retain waits for the next one. */
export const FAILS = `CREATE TRIGGER IF NOT EXISTS fails BEFORE INSERT ON documents WHEN NEW.document_id = 'later'
  BEGIN SELECT RAISE(ABORT, 'not now'); END`

export const kinds = ['retain', 'consolidation', 'refresh', 'waiting', 'extraction', 'embedding'] as const
export type Kind = typeof kinds[number]

interface Cancellable {
  /** Begins it in the bank `b`. Returns its id. */
  readonly begin: (ask: Ask, store: Store) => Promise<string>
  /** Whether its work is done. */
  readonly isDone: (call: Wire['call']) => Promise<boolean>
  /** It holds up what writes, not what asks a model. */
  readonly writes?: true
  readonly extracts?: true
  readonly embeds?: true
}

const kept = (ask: Ask): Promise<unknown> => ask('POST', 'b/memories', { items: [{ content: 'So I say.', document_id: 'd' }] })
const texts = async (call: Wire['call']): Promise<string[]> =>
  (await call('GET', 'b/memories/list')).body.items.map(({ text }: { readonly text: string }) => text)

async function refresh (ask: Ask): Promise<string> {
  return (await ask('POST', 'b/mental-models', { id: 'mm', name: 'Mine', source_query: 'What do I say?' })).operation_id!
}
const isRefreshed: Cancellable['isDone'] = async call => (await call('GET', 'b/mental-models/mm')).body.content !== ''

/** Operations that can be cancelled while they run, or wait: for a new try, or behind another one. */
export const cancellable: Readonly<Record<Kind, Cancellable>> = {
  retain: {
    writes: true,
    begin: async ask => {
      const answer = await ask('POST', 'b/memories', { items: [{ content: 'It comes later.', document_id: 'later' }], async: true })
      return answer.operation_id!
    },
    isDone: async call => (await call('GET', 'b/documents/later')).status === 200
  },
  consolidation: {
    begin: async ask => {
      await kept(ask)
      return (await ask('POST', 'b/consolidate', {})).operation_id!
    },
    isDone: async call => (await texts(call)).includes('Numbers.')
  },
  refresh: {
    begin: async ask => {
      await kept(ask)
      return await refresh(ask)
    },
    isDone: isRefreshed
  },
  waiting: {
    begin: async ask => {
      await kept(ask)
      await ask('POST', 'b/consolidate', {})
      return await refresh(ask)
    },
    isDone: isRefreshed
  },
  extraction: {
    extracts: true,
    begin: async (ask, store) => {
      await kept(ask)
      return store.get<{ id: string }>(`SELECT id FROM operations WHERE type = 'graph_maintenance'`)!.id
    },
    isDone: async call => !(await texts(call)).includes('So I say.')
  },
  embedding: {
    embeds: true,
    begin: async (ask, store) => {
      await ask('POST', 'b/memories', { items: Array.from({ length: 40 }, (_, i) => ({ content: `Note ${i}.` })) })
      const known = (): string | undefined => store.get<{ id: string }>(`SELECT id FROM operations WHERE type = 'embedding'`)?.id
      while (known() === undefined) await new Promise(resolve => { setImmediate(resolve) })
      return known()!
    },
    isDone: async call => (await call('GET', 'b/embeddings')).body.done > 0
  }
}
