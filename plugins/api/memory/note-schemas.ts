import { z } from 'zod'
import { tagsMatches } from '../../services/memory/ref.js'

const LONGEST_QUERY = 100_000
const DOCUMENT_ID = /^[A-Za-z0-9_-]{1,64}$/

const names = z.array(z.string().min(1).max(200)).max(100)
const time = z.iso.datetime({ offset: true }).or(z.iso.date())
const dataset = z.string().max(80)
const datasets = z.union([dataset, z.array(dataset).max(50)])
const types = z.array(z.enum(['world', 'experience', 'observation'])).min(1).max(3)

const about = {
  dataset: '`shared` (default), `agents`, `project:<id>` or, with `X-svc-Private`, `private:<own name>`'
}

export const noteSchema = z.strictObject({
  id: z.string().meta({ description: 'Id of its document' }),
  memory_id: z.string().meta({ description: 'Id of the memory in its bank' }),
  text: z.string(),
  timestamp: z.string().meta({ description: 'ISO 8601; empty if unknown' }),
  dataset: z.string(),
  tags: z.array(z.string()),
  source: z.string().nullable().meta({ description: 'The agent that wrote it; null if unknown' }),
  metadata: z.record(z.string(), z.string()),
  score: z.number().nullable().meta({ description: 'Null in lists' }),
  type: z.string().nullable().meta({ description: '`world`, `experience` or `observation`' })
}).meta({ title: 'Memory' })

export const addSchema = z.strictObject({
  text: z.string().min(1).max(1_000_000).regex(/\S/, { error: 'must not be blank' }),
  dataset: dataset.optional().meta({ description: `${about.dataset}; in private mode always the last of them` }),
  tags: names.optional().meta({ description: 'Tags that start with `agent:` or `visibility:` are reserved for the gateway and dropped' }),
  metadata: z.record(z.string().max(200), z.union([z.string().max(10_000), z.number(), z.boolean()])).optional(),
  document_id: z.string().regex(DOCUMENT_ID, { error: 'takes letters, digits, _ and -, at most 64' }).optional().meta({ description: 'Reusing an id replaces its document; default is `<agent>:<session_id>` if `metadata` has a session, to which the text is added, else a new id' })
})

export const addedSchema = z.strictObject({
  id: z.string(),
  timestamp: z.string(),
  operation_id: z.string().optional().meta({ description: 'Id of the background operation, if there is one' }),
  known: z.boolean().optional().meta({ description: 'True if it already existed: `id` is that of its document. Only the embedded engine checks, and only without `document_id`' }),
  memory_id: z.string().optional().meta({ description: 'Id of the existing memory, if it is a single one' })
})

export const searchSchema = z.strictObject({
  query: z.string().min(1).max(LONGEST_QUERY).regex(/\S/, { error: 'must not be blank' }),
  limit: z.int().min(1).max(200).default(10),
  dataset: datasets.optional().meta({ description: `One or a list; those that cannot be read are skipped: ${about.dataset}` }),
  tags: names.optional().meta({ description: 'Only memories with one of them' }),
  before: time.optional().meta({ description: 'ISO 8601' }),
  after: time.optional().meta({ description: 'ISO 8601' })
})

export const recallSchema = z.strictObject({
  query: z.string().min(1).max(LONGEST_QUERY).regex(/\S/, { error: 'must not be blank' }),
  max_tokens: z.int().min(1).max(65_536).default(4096),
  types: types.optional(),
  dataset: datasets.optional(),
  tags: names.optional(),
  tags_match: z.enum(tagsMatches).optional().meta({ description: 'One of the tags (`any`, the default) or each (`all`), or a memory without tags; `any_strict` and `all_strict` without those; `exact`: these and no others. The tags that the gateway sets (`agent:`, `visibility:`) do not count' })
})

export const listSchema = z.strictObject({
  dataset: z.string().max(80).optional(),
  bank: z.string().max(80).optional().meta({ description: 'The same as `dataset`' }),
  cursor: z.string().max(300).optional().meta({ description: '`next_cursor` of the previous page' }),
  limit: z.coerce.number().int().min(1).max(200).default(50)
})

export const deleteSchema = z.strictObject({
  ids: z.array(z.string().min(1).max(512)).min(1).max(200),
  dataset: datasets.optional()
})

export const foundSchema = z.strictObject({
  items: z.array(noteSchema),
  ran_on: z.array(z.string()).meta({ description: 'Methods that found and ordered them: `text`, `vectors`, `rerank`; `text` alone without a model. `hindsight` for a Hindsight server, which does not report them' })
})
export const pageSchema = z.strictObject({ items: z.array(noteSchema), next_cursor: z.string().nullable() })
export const deletedSchema = z.strictObject({ deleted: z.int() })
