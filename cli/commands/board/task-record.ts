import { Option } from 'commander'
import { z } from 'zod'
import { pathOf, type ApiClient } from '../../client/client.js'
import { CliFailure } from '../../failure.js'

/** As `GET /api/board` and its neighbours answer it, as far as the command line shows it. */
export const taskSchema = z.looseObject({
  id: z.string(),
  title: z.string(),
  status: z.string(),
  assignee: z.string().nullable(),
  priority: z.number(),
  created_by: z.string(),
  body: z.string(),
  block_reason: z.string().nullable(),
  summary: z.string().nullable(),
  revision: z.number(),
  deps: z.looseObject({ parents: z.array(z.string()), children: z.array(z.string()) }),
  comments: z.array(z.looseObject({ author: z.string(), body: z.string() })),
  runs: z.array(z.looseObject({
    id: z.string(), state: z.string(), profile: z.string(), dur: z.number().nullable(), msg: z.string().nullable()
  })),
  dep_count: z.string().nullable()
})
export type TaskRecord = z.output<typeof taskSchema>

export const lanesSchema = z.looseObject({ lanes: z.record(z.string(), z.array(taskSchema)) })

/** Every command that is about one board. */
export interface BoardOption {
  readonly board?: string
}

export function boardOption (): Option {
  return new Option('--board <slug>', 'board; default is the current one')
}

export function boardQuery ({ board }: BoardOption): Record<string, string> {
  return board === undefined ? {} : { board }
}

/** The task that begins like this; its whole id need not be typed. Throws when there is none, or more than one. */
export async function taskOf (client: ApiClient, beginning: string, option: BoardOption): Promise<TaskRecord> {
  const { lanes } = await client.call({ path: '/api/board', query: { ...boardQuery(option), include_archived: true } }, lanesSchema)
  const wanted = beginning.startsWith('t_') ? beginning : `t_${beginning}`
  const [found, ...others] = Object.values(lanes).flat().filter(({ id }) => id.startsWith(wanted))
  if (found === undefined) throw new CliFailure(`no task id starts with ${wanted}`, { hints: ['`svc board list --all` shows them.'] })
  if (others.length > 0) throw new CliFailure(`${others.length + 1} task ids start with ${wanted}; type more of the id`)
  return client.call({ path: pathOf`/api/board/tasks/${found.id}`, query: boardQuery(option) }, taskSchema)
}
