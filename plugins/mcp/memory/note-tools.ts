import { defineTool, svcError, type ActivityLog, type ToolCall, type ToolDefinition } from 'svc-gateway/plugin'
import { z } from 'zod'
import { checkedIdentity, committedSignal, tagsMatches, type MemoryIdentity, type MemoryService, type RecalledNotes } from '../../services/memory/ref.js'

export interface ToolDeps {
  readonly activity: ActivityLog
  readonly memory: MemoryService
}

export const server = 'memory'

const LONGEST_TARGET = 200
const text = z.string().min(1).max(1_000_000).regex(/\S/, { error: 'must not be blank' })
const query = z.string().min(1).max(100_000).regex(/\S/, { error: 'must not be blank' })
const DATASETS = 'shared (default), agents, project:<id>, or private:<own name> in private mode'
export const dataset = z.string().max(80).meta({ description: DATASETS })
const datasets = z.union([z.string().max(80), z.array(z.string().max(80)).max(50)]).meta({ description: `One or a list of ${DATASETS}` })
const tagList = z.array(z.string().min(1).max(200)).max(100)
const tags = z.union([z.string().max(4000), tagList]).meta({ description: 'A list, or names with commas between them' })
const time = z.iso.datetime({ offset: true }).or(z.iso.date()).meta({ description: 'ISO 8601' })
const limit = z.int().min(1).max(200)

/** The memories of agents: the same as `/api/memory/add` and its neighbours. */
export function noteTools ({ activity, memory: { notes } }: ToolDeps): ToolDefinition[] {
  return [
    defineTool({
      server,
      name: 'memory_add',
      title: 'Remember',
      description: 'Remembers a text for later conversations. Call it for one fact, decision or preference at a time, in a sentence that can be understood alone. `known` in the answer says that it already existed.',
      input: z.strictObject({
        text,
        dataset: dataset.optional(),
        tags: tags.optional(),
        metadata: z.record(z.string().max(200), z.union([z.string().max(10_000), z.number(), z.boolean()])).optional(),
        document_id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/).optional().meta({ description: 'A memory with the same id is replaced' })
      }),
      destructive: false,
      unwritten: ['text', 'metadata'],
      handler: async call => {
        const { tags: given, metadata = {}, ...note } = call.input
        const texts = Object.fromEntries(Object.entries(metadata).map(([key, value]) => [key, String(value)]))
        const added = await notes.add(whoOf(call), { ...note, metadata: texts, tags: listOf(given) }, call.signal)
        return { status: 'ok', ...added }
      }
    }),
    defineTool({
      server,
      name: 'memory_search',
      title: 'Search memories',
      description: 'Finds memories by meaning and words, the best first. Call it before answering questions about earlier conversations.',
      input: z.strictObject({
        query,
        limit: limit.default(10),
        dataset: datasets.optional(),
        tags: tags.optional().meta({ description: 'Only memories with one of them: a list, or names with commas between them' }),
        before: time.optional(),
        after: time.optional()
      }),
      readOnly: true,
      handler: async call => {
        const { tags: given, ...asked } = call.input
        return told(await notes.search(whoOf(call), { ...asked, tags: listOf(given) }, call.signal))
      }
    }),
    defineTool({
      server,
      name: 'memory_recall',
      title: 'Recall within a budget',
      description: 'Finds memories about a subject, up to a number of tokens. Call it to fill a context.',
      input: z.strictObject({
        query,
        max_tokens: z.int().min(1).max(65_536).default(4096),
        types: z.array(z.enum(['world', 'experience', 'observation'])).min(1).max(3).optional(),
        dataset: datasets.optional(),
        tags: tags.optional(),
        tags_match: z.enum(tagsMatches).optional().meta({ description: 'any (default) and all take memories without tags, too; any_strict and all_strict do not; exact takes those with these tags and no others' })
      }),
      readOnly: true,
      handler: async call => {
        const { tags: given, ...asked } = call.input
        return told(await notes.recall(whoOf(call), { ...asked, tags: listOf(given) }, call.signal))
      }
    }),
    defineTool({
      server,
      name: 'memory_list',
      title: 'List memories',
      description: 'Lists memories page by page. Call it to browse them; use memory_search to find something.',
      input: z.strictObject({ dataset: dataset.optional(), cursor: z.string().max(300).optional(), limit: limit.default(50) }),
      readOnly: true,
      handler: async call => await notes.list(whoOf(call), call.input, call.signal)
    }),
    defineTool({
      server,
      name: 'memory_delete',
      title: 'Forget memories',
      description: 'Deletes memories for good, by the ids from memory_search and memory_list. One id is deleted at once; more wait for an operator.',
      input: z.strictObject({ ids: z.array(z.string().min(1).max(512)).min(1).max(200), dataset: datasets.optional() }),
      primary: 'ids',
      destructive: true,
      idempotent: true,
      gatedWhen: ({ ids }) => new Set(ids).size > 1,
      handler: async call => {
        const { ids, dataset: from } = call.input
        const target = ids.join(',').slice(0, LONGEST_TARGET)
        return await activity.audited({ category: 'memory', action: 'memory.items.delete', target, actor: call.actor, outcome: 'pending' }, async note => {
          const noted = (deleted: number): void => note({ after: { deleted, ids: ids.length } })
          noted(0)
          return { deleted: await notes.remove(whoOf(call), ids, from, committedSignal(), noted) }
        })
      }
    })
  ]
}

/** Throws as the headers of a request do. */
export function whoOf ({ agent, private: isPrivate }: Pick<ToolCall<unknown>, 'agent' | 'private'>): MemoryIdentity {
  return checkedIdentity(agent ?? 'anonymous', isPrivate && agent !== null)
}

/** `ran_on` tells an agent whether it was found by words alone. */
function told ({ notes, ranOn }: RecalledNotes): object {
  return { results: notes, ran_on: ranOn }
}

/** Names with commas between them are bounded as a list is. Throws `validation.invalid`. */
function listOf (given: string | string[] | undefined): string[] | undefined {
  if (typeof given !== 'string') return given
  const read = tagList.safeParse(given.split(',').map(tag => tag.trim()).filter(tag => tag !== ''))
  if (!read.success) throw svcError('validation.invalid', `invalid tags: ${z.prettifyError(read.error)}`, { param: 'tags' })
  return read.data
}
