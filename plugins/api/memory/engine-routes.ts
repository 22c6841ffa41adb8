import type { HttpMethod } from 'svc-gateway/plugin'

/** A route of the engine that is offered below `/api/memory` as it is. */
export interface EngineRoute {
  readonly method: HttpMethod
  /** Below `/api/memory/banks/:bank`. */
  readonly url: string
  /** Below `/v1/default/banks/{bank}`, where it is called otherwise there. */
  readonly target?: string
  readonly summary: string
  /** A key that a good answer must have, and what it is. */
  readonly shape?: readonly [key: string, type: 'list' | 'string']
  /** Takes a body. */
  readonly body?: true
  readonly example?: unknown
  /** Nothing is done before the query or the body repeats the id of the bank. */
  readonly confirmed?: true
}

/** The table of what operators may ask of the engine about one bank. */
export const engineRoutes: readonly EngineRoute[] = [
  { method: 'PUT', url: '', summary: 'Create or change a bank', body: true, example: { name: 'Notes' } },
  { method: 'PATCH', url: '', summary: 'Change a bank', body: true, example: { name: 'Notes' } },
  { method: 'DELETE', url: '', summary: 'Delete a bank and everything in it', body: true, confirmed: true, example: { confirm: 'notes' } },
  { method: 'GET', url: '/stats', summary: 'Statistics of a bank' },
  { method: 'GET', url: '/stats/timeseries', target: '/stats/memories-timeseries', summary: 'Number of memories over time' },
  { method: 'GET', url: '/config', summary: 'The settings of a bank' },
  { method: 'PATCH', url: '/config', summary: 'Change settings of a bank', body: true, example: { updates: { reflect_mission: 'Answer briefly' } } },
  { method: 'DELETE', url: '/config', summary: 'Reset the settings of a bank to their defaults' },
  { method: 'GET', url: '/graph', summary: 'Graph of memories' },
  { method: 'GET', url: '/entities/graph', summary: 'Graph of entities' },
  { method: 'GET', url: '/entities', summary: 'Entities of a bank' },
  { method: 'GET', url: '/entities/:id', summary: 'One entity' },
  { method: 'GET', url: '/memories', target: '/memories/list', summary: 'The memories of a bank, page by page' },
  { method: 'DELETE', url: '/memories', summary: 'Delete all memories of a bank, or those of one type' },
  { method: 'GET', url: '/memories/:id', summary: 'One memory' },
  { method: 'PATCH', url: '/memories/:id', summary: 'Change, invalidate or restore one memory', body: true, example: { state: 'invalidated', reason: 'out of date' } },
  { method: 'DELETE', url: '/memories/:id', summary: 'Delete one memory for good; not every engine can' },
  { method: 'GET', url: '/memories/:id/history', summary: 'History of a memory' },
  { method: 'GET', url: '/documents', summary: 'Source documents of memories' },
  { method: 'GET', url: '/documents/:id', summary: 'One document' },
  { method: 'PATCH', url: '/documents/:id', summary: 'Change the tags of a document', body: true, example: { tags: ['work'] } },
  { method: 'DELETE', url: '/documents/:id', summary: 'Delete a document and its memories' },
  { method: 'POST', url: '/documents/:id/reprocess', summary: 'Extract the memories of a document again' },
  { method: 'GET', url: '/tags', summary: 'The tags of a bank' },
  { method: 'POST', url: '/recall', target: '/memories/recall', summary: 'Search a bank', shape: ['results', 'list'], body: true, example: { query: 'Where does Alice work?' } },
  { method: 'POST', url: '/reflect', summary: 'Let a model answer from the memories of a bank', shape: ['text', 'string'], body: true, example: { query: 'What do you know about Alice?' } },
  { method: 'GET', url: '/mental-models', summary: 'The mental models of a bank' },
  { method: 'POST', url: '/mental-models', summary: 'Create a mental model', body: true, example: { name: 'Alice', source_query: 'What do we know about Alice?' } },
  { method: 'GET', url: '/mental-models/:id', summary: 'One mental model' },
  { method: 'PATCH', url: '/mental-models/:id', summary: 'Change a mental model', body: true, example: { name: 'Alice' } },
  { method: 'DELETE', url: '/mental-models/:id', summary: 'Delete a mental model' },
  { method: 'POST', url: '/mental-models/:id/refresh', summary: 'Refresh a mental model' },
  { method: 'GET', url: '/mental-models/:id/history', summary: 'History of a mental model' },
  { method: 'GET', url: '/directives', summary: 'The directives of a bank', shape: ['items', 'list'] },
  { method: 'POST', url: '/directives', summary: 'Add a directive', body: true, example: { name: 'short', content: 'Answer briefly' } },
  { method: 'PATCH', url: '/directives/:id', summary: 'Change a directive', body: true, example: { is_active: false } },
  { method: 'DELETE', url: '/directives/:id', summary: 'Delete a directive' },
  { method: 'GET', url: '/operations', summary: 'Background operations of the engine' },
  { method: 'GET', url: '/operations/:id', summary: 'One operation' },
  { method: 'DELETE', url: '/operations/:id', summary: 'Cancel an operation' },
  { method: 'POST', url: '/operations/:id/retry', summary: 'Retry a failed operation' },
  { method: 'POST', url: '/consolidate', summary: 'Consolidate memories into observations' },
  { method: 'POST', url: '/consolidation/recover', summary: 'Retry failed consolidations' },
  { method: 'GET', url: '/export', summary: 'Settings, mental models and directives of a bank as a template' },
  { method: 'POST', url: '/import', summary: 'Apply a template to a bank', body: true, example: { version: '1', directives: [] } }
]
