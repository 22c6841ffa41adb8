import type { ToolDefinition } from 'svc-gateway/plugin'
import { z } from 'zod'
import { visibleOnly } from '../../services/memory/ref.js'
import { bankTool, type BankTool } from './bank-tool.js'
import { dataset, type ToolDeps } from './note-tools.js'

const scope = { dataset: dataset.optional() }
const id = z.string().min(1).max(256)
const page = { limit: z.int().min(1).max(200).default(50), offset: z.int().min(0).default(0) }
const longText = z.string().min(1).max(100_000)
const names = z.array(z.string().min(1).max(200)).max(100)

/** What an agent may ask of its banks besides memories by dataset: one call of the engine each. */
export function bankTools (deps: ToolDeps): ToolDefinition[] {
  const tool = <S extends z.ZodObject>(row: BankTool<S>): ToolDefinition => bankTool(deps, row)
  const paged = ({ limit, offset }: { limit: number, offset: number }): Readonly<Record<string, number>> => ({ limit, offset })
  return [
    tool({
      name: 'memory_reflect',
      title: 'Reflect',
      description: 'Has a model answer a question from the memories. Call it for questions that no single memory answers; it takes a while and needs a language model.',
      input: z.strictObject({ query: longText, max_tokens: z.int().min(1).max(65_536).default(4096), ...scope }),
      kind: 'read',
      method: 'POST',
      path: () => ['reflect'],
      body: async ({ query, max_tokens }, { bank, identity, signal }) => (
        { query, max_tokens, ...await visibleOnly(deps.memory.engine(), bank, identity, signal) })
    }),
    tool({
      name: 'memory_history',
      title: 'History of a memory',
      description: 'Shows the origin and history of one memory, by its memory_id.',
      input: z.strictObject({ memory_id: id, ...scope }),
      kind: 'read',
      method: 'GET',
      path: ({ memory_id }) => ['memories', memory_id, 'history'],
      memory: ({ memory_id }) => memory_id
    }),
    tool({
      name: 'memory_curate',
      title: 'Curate a memory',
      description: 'Invalidates a memory that is no longer true, restores it, or corrects its text, by its memory_id. Prefer it to deleting.',
      input: z.strictObject({
        memory_id: id, state: z.enum(['valid', 'invalidated']).optional(), reason: z.string().max(1000).optional(), text: longText.optional(), ...scope
      }),
      unwritten: ['text', 'reason'],
      kind: 'write',
      method: 'PATCH',
      path: ({ memory_id }) => ['memories', memory_id],
      body: ({ memory_id: _id, dataset: _dataset, ...changes }) => changes,
      memory: ({ memory_id }) => memory_id
    }),
    tool({
      name: 'mental_model_list',
      title: 'Mental models',
      description: 'Lists the mental models: standing answers to questions, kept up to date.',
      input: z.strictObject({ ...page, ...scope }),
      kind: 'read',
      method: 'GET',
      path: () => ['mental-models'],
      query: paged
    }),
    tool({
      name: 'mental_model_get',
      title: 'A mental model',
      description: 'Reads one mental model.',
      input: z.strictObject({ id, ...scope }),
      kind: 'read',
      method: 'GET',
      path: input => ['mental-models', input.id]
    }),
    tool({
      name: 'mental_model_create',
      title: 'Create a mental model',
      description: 'Creates a mental model: a question that is answered from the memories, and stored. Needs a language model.',
      input: z.strictObject({ name: z.string().min(1).max(500), source_query: longText, tags: names.optional(), ...scope }),
      unwritten: ['source_query'],
      kind: 'write',
      method: 'POST',
      path: () => ['mental-models'],
      body: ({ dataset: _dataset, ...model }) => model
    }),
    tool({
      name: 'mental_model_refresh',
      title: 'Refresh a mental model',
      description: 'Refreshes a mental model. It continues in the background: operation_get shows when it is done.',
      input: z.strictObject({ id, ...scope }),
      kind: 'write',
      method: 'POST',
      path: input => ['mental-models', input.id, 'refresh']
    }),
    tool({
      name: 'mental_model_delete',
      title: 'Delete a mental model',
      description: 'Deletes one mental model; memories stay.',
      input: z.strictObject({ id, ...scope }),
      kind: 'delete',
      method: 'DELETE',
      path: input => ['mental-models', input.id],
      action: 'memory.mental_model.delete'
    }),
    tool({
      name: 'directive_list',
      title: 'Directives',
      description: 'Lists the directives that reflection follows.',
      input: z.strictObject({ ...page, ...scope }),
      kind: 'read',
      method: 'GET',
      path: () => ['directives'],
      query: paged
    }),
    tool({
      name: 'directive_create',
      title: 'Add a directive',
      description: 'Adds a directive that reflection follows from now on.',
      input: z.strictObject({
        name: z.string().min(1).max(500),
        content: longText,
        priority: z.int().min(-1000).max(1000).optional(),
        tags: names.optional(),
        ...scope
      }),
      unwritten: ['content'],
      kind: 'write',
      method: 'POST',
      path: () => ['directives'],
      body: ({ dataset: _dataset, ...directive }) => directive
    }),
    tool({
      name: 'directive_delete',
      title: 'Delete a directive',
      description: 'Deletes one directive.',
      input: z.strictObject({ id, ...scope }),
      kind: 'delete',
      method: 'DELETE',
      path: input => ['directives', input.id],
      action: 'memory.directive.delete'
    }),
    tool({
      name: 'operation_list',
      title: 'Operations',
      description: 'Lists the background operations of the memory, and failed ones.',
      input: z.strictObject({ limit: z.int().min(1).max(100).default(20), offset: z.int().min(0).default(0), ...scope }),
      kind: 'read',
      method: 'GET',
      path: () => ['operations'],
      query: paged
    }),
    tool({
      name: 'operation_get',
      title: 'An operation',
      description: 'Shows the progress of one operation, by the operation_id of another answer.',
      input: z.strictObject({ operation_id: id, ...scope }),
      kind: 'read',
      method: 'GET',
      path: ({ operation_id }) => ['operations', operation_id]
    }),
    tool({
      name: 'operation_cancel',
      title: 'Cancel an operation',
      description: 'Cancels an operation that has not ended.',
      input: z.strictObject({ operation_id: id, ...scope }),
      kind: 'delete',
      method: 'DELETE',
      path: ({ operation_id }) => ['operations', operation_id],
      action: 'memory.operation.delete'
    }),
    tool({
      name: 'operation_retry',
      title: 'Retry an operation',
      description: 'Retries a failed operation.',
      input: z.strictObject({ operation_id: id, ...scope }),
      kind: 'write',
      method: 'POST',
      path: ({ operation_id }) => ['operations', operation_id, 'retry']
    }),
    tool({
      name: 'tags_list',
      title: 'Tags',
      description: 'Lists the tags of memories, with how often each is used.',
      input: z.strictObject({ q: z.string().max(200).optional(), ...page, ...scope }),
      kind: 'read',
      method: 'GET',
      path: () => ['tags'],
      query: ({ q, limit, offset }) => ({ limit, offset, ...q === undefined ? {} : { q } })
    }),
    tool({
      name: 'bank_stats',
      title: 'Statistics of a dataset',
      description: 'Shows the size of the memory and its running operations.',
      input: z.strictObject(scope),
      kind: 'read',
      method: 'GET',
      path: () => ['stats']
    }),
    tool({
      name: 'bank_consolidate',
      title: 'Consolidate',
      description: 'Consolidates memories into observations. It continues in the background; needs a language model.',
      input: z.strictObject(scope),
      kind: 'write',
      method: 'POST',
      path: () => ['consolidate'],
      body: () => ({})
    })
  ]
}
