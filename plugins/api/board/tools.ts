import type { RouteTool } from 'svc-gateway/plugin'
import type { z } from 'zod'
import type { lanesSchema, taskSchema } from './schemas.js'

type TaskRow = Pick<z.output<typeof taskSchema>, 'id' | 'title' | 'status' | 'assignee' | 'priority' | 'dep_count'>

/** The board for agents. */
export const boardTools = {
  list: {
    name: 'board_list',
    title: 'List the board',
    description: 'Lists the tasks of the board. Call it before you add or move a task.',
    readOnly: true,
    show: [],
    short: ({ lanes }: z.output<typeof lanesSchema>) => ({ tasks: Object.values(lanes).flat().map(rowOf) }),
    narrow: 'look at one with board_task'
  },
  task: {
    name: 'board_task',
    title: 'Show a task',
    description: 'Shows one task whole: body, dependencies, comments, runs. Call it before you work on a task.',
    rename: { id: 'task_id' },
    show: ['task_id'],
    readOnly: true
  },
  add: {
    name: 'board_add',
    title: 'Add a task',
    description: 'Adds a task to the board, in triage by default. Call it for work to do later.',
    show: ['title', 'body', 'status', 'assignee', 'priority', 'parents'],
    destructive: false
  },
  update: {
    name: 'board_update',
    title: 'Change a task',
    description: 'Changes a task or moves it to another lane: done with a summary, blocked with block_reason, review. Call it when you have finished a task or cannot go on.',
    rename: { id: 'task_id' },
    show: ['task_id', 'status', 'body', 'assignee', 'block_reason', 'summary'],
    destructive: false
  },
  comment: {
    name: 'board_comment',
    title: 'Comment on a task',
    description: 'Comments on a task. Call it to report your progress.',
    rename: { id: 'task_id' },
    show: ['task_id', 'body'],
    destructive: false
  },
  link: {
    name: 'board_link',
    title: 'Link two tasks',
    description: 'Makes a task wait until another is done. Call it when the child needs the result of the parent.',
    show: ['parent_id', 'child_id'],
    destructive: false,
    idempotent: true
  }
} satisfies Readonly<Record<string, RouteTool>>

const server = 'board'

/** Tools of a server of their own: the list of the gateway's other tools has no room for them. */
export const moreTools = {
  unlink: { server, name: 'remove_dependency', description: 'Removes a dependency between two tasks.', show: ['parent_id', 'child_id'] },
  specify: {
    server,
    name: 'specify_task',
    description: 'Has a model write a detailed description of a task. Call it for a task that is too short to work on.',
    rename: { id: 'task_id' },
    show: ['task_id'],
    destructive: false
  },
  decompose: {
    server,
    name: 'decompose_task',
    description: 'Has a model split a task into parts that it depends on. Call it for a task that is too large for one agent.',
    rename: { id: 'task_id' },
    show: ['task_id'],
    destructive: false
  },
  dispatch: { server, name: 'nudge_dispatcher', description: 'Hands ready tasks to agents now.', destructive: false },
  agents: { server, name: 'list_agents', description: 'Lists the agents that can be given tasks.', readOnly: true, show: [], short: (agents: unknown) => ({ agents }) },
  assignees: { server, name: 'get_assignees', description: 'Lists the agents and people that have, or can be given, tasks.', readOnly: true, show: [], short: (assignees: unknown) => ({ assignees }) },
  orchestration: { server, name: 'get_orchestration', description: 'Shows the automation settings for tasks.', readOnly: true },
  orchestrate: { server, name: 'update_orchestration', description: 'Changes the automation settings for tasks; an operator has to approve it.', gated: true }
} satisfies Readonly<Record<string, RouteTool>>

function rowOf ({ id, title, status, assignee, priority, dep_count: deps }: TaskRow): TaskRow {
  return { id, title, status, assignee, priority, dep_count: deps }
}
