import { z } from 'zod'
import { boardEventKinds, runStates, taskStatuses } from '../../services/board/ref.js'

const epoch = z.number().meta({ description: 'Epoch seconds' })
const status = z.enum(taskStatuses)
const name = z.string().min(1).max(64).regex(/^[\p{L}\p{N}][\p{L}\p{N}._:/-]*$/u)
const slug = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,47}$/).meta({ description: 'Name of a board in URLs', examples: ['default'] })
export const taskId = z.string().regex(/^t_[0-9a-f]{8}$/)

export const runSchema = z.strictObject({
  id: z.string(),
  state: z.enum(runStates),
  profile: z.string().meta({ description: 'The agent' }),
  dur: z.number().nullable().meta({ description: 'Seconds; null while it runs' }),
  at: epoch,
  msg: z.string().nullable()
}).meta({ title: 'BoardRun' })

export const taskSchema = z.strictObject({
  id: taskId,
  title: z.string(),
  status,
  assignee: z.string().nullable(),
  profile: z.string().nullable(),
  tenant: z.string().nullable(),
  priority: z.int(),
  workspace: z.string().nullable(),
  created_by: z.string(),
  created: epoch,
  updated_at: epoch,
  body: z.string(),
  block_reason: z.string().nullable(),
  schedule: epoch.nullable(),
  summary: z.string().nullable(),
  revision: z.int(),
  deps: z.strictObject({ parents: z.array(z.string()), children: z.array(z.string()) }),
  comments: z.array(z.strictObject({ author: z.string(), at: epoch, body: z.string() })),
  events: z.array(z.strictObject({ kind: z.enum(boardEventKinds), at: epoch, json: z.unknown() })).meta({ description: 'The last 50, oldest first' }),
  runs: z.array(runSchema),
  comment_count: z.int(),
  dep_count: z.string().nullable().meta({ description: '"done/total" of its dependencies' })
}).meta({ title: 'BoardTask' })

const patchable = {
  title: z.string().trim().min(1).max(500),
  status,
  assignee: name.nullable(),
  profile: name.nullable(),
  tenant: name.nullable(),
  priority: z.int().min(-1000).max(1000),
  workspace: z.string().max(1000).nullable(),
  body: z.string().max(64 * 1024),
  block_reason: z.string().max(2000).nullable(),
  schedule: z.number().min(0).max(1e11).nullable().meta({ description: 'Epoch seconds' }),
  summary: z.string().max(16 * 1024).nullable()
}

export const patchSchema = z.strictObject(patchable).partial()
export const newTaskSchema = patchSchema.extend({ title: patchable.title, parents: z.array(taskId).max(50).optional() })
export const bulkSchema = patchSchema.extend({ ids: z.array(taskId).min(1).max(1000) })
export const commentSchema = z.strictObject({ author: name.optional().meta({ description: 'Default: who asks' }), body: z.string().trim().min(1).max(16 * 1024) })
export const reassignSchema = z.strictObject({ profile: patchable.profile, assignee: patchable.assignee }).partial()
/** In an address, where the page of the API shows an example of each part. */
export const linkQuerySchema = z.strictObject({
  parent_id: taskId.meta({ description: 'Id of the task that must be done first', examples: ['t_0123abcd'] }),
  child_id: taskId.meta({ description: 'Id of the task that depends on it', examples: ['t_4567cdef'] })
})
export const linkSchema = z.strictObject({ parent_id: taskId, child_id: taskId })

export const boardQuerySchema = z.strictObject({
  board: z.string().max(48).optional().meta({ description: 'Slug of the board; default is the current one' })
})
export const lanesQuerySchema = boardQuerySchema.extend({ include_archived: z.stringbool().optional() })
export const taskParamsSchema = z.strictObject({
  id: z.string().min(1).max(64).meta({ description: 'Id of the task', pattern: '^t_[0-9a-f]{8}$', examples: ['t_0123abcd'] })
})
export const boardParamsSchema = z.strictObject({
  slug: z.string().min(1).max(64).meta({ description: 'Slug of the board', pattern: '^[a-z0-9][a-z0-9_-]{0,47}$', examples: ['default'] })
})

export const lanesSchema = z.strictObject({
  lanes: z.partialRecord(status, z.array(taskSchema)).meta({ description: 'By status; tasks without comments, events and runs, and with the first 1,000 characters of `body`' })
})
export const answerSchema = z.strictObject({ task: taskSchema })
export const updatedSchema = z.strictObject({ updated: z.int() })
export const okSchema = z.strictObject({ ok: z.literal(true) })

const boardWords = { name: z.string().trim().min(1).max(100), icon: z.string().max(16).nullable(), desc: z.string().max(2000) }
export const boardPatchSchema = z.strictObject(boardWords).partial()
export const newBoardSchema = boardPatchSchema.extend({ slug: slug.optional() })
export const boardSchema = z.strictObject({
  slug: z.string(), name: z.string(), icon: z.string().nullable(), desc: z.string(), count: z.int(), current: z.boolean()
}).meta({ title: 'Board' })
export const boardsSchema = z.array(boardSchema)
export const switchedSchema = z.strictObject({ ok: z.literal(true), slug: z.string(), current: z.string() })
export const statsSchema = z.strictObject({ total: z.int(), by_status: z.record(z.string(), z.int()) })
export const diagnosticsSchema = z.strictObject({
  ok: z.boolean(),
  store: z.string().meta({ description: 'Path of the database of the tasks' }),
  boards: z.int(),
  cards: z.int().meta({ description: 'Tasks of all boards' }),
  blocked: z.int()
})

export const eventsQuerySchema = boardQuerySchema.extend({
  since: z.coerce.number().int().min(0).optional().meta({ description: '`cursor` of the last frame; without it only new events are sent' })
})
