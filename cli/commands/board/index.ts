import { Option, type Command } from 'commander'
import { z } from 'zod'
import type { Cli } from '../../cli.js'
import { pathOf } from '../../client/client.js'
import { examples } from '../../terminal/help.js'
import { numberOf } from '../../option-value.js'
import { harmless } from '../../terminal/text-width.js'
import { boardOption, boardQuery, lanesSchema, taskOf, taskSchema, type BoardOption, type TaskRecord } from './task-record.js'
import { addBoardWatch } from './watch.js'

const lanes = ['triage', 'todo', 'scheduled', 'ready', 'blocked', 'review', 'done', 'archived'] as const
const priority = z.int().min(-1000).max(1000)

export function addBoardCommands (program: Command, cli: Cli): void {
  const board = program.command('board').description('show the board: tasks for people and agents')
  addBoardList(board, cli)
  addBoardShow(board, cli)
  addBoardAdd(board, cli)
  addBoardMove(board, cli)
  addBoardWatch(board, cli)
}

function addBoardList (board: Command, cli: Cli): void {
  board.command('list')
    .description('list the tasks, lane by lane')
    .addOption(boardOption())
    .option('--all', 'include archived ones')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc board list', 'svc board list --all --json'))
    .action(async (options: BoardOption & { all?: true, json?: true }, command: Command) => {
      const client = cli.client(command)
      const call = { path: '/api/board', query: { ...boardQuery(options), ...(options.all === true ? { include_archived: true } : {}) } }
      if (options.json === true) return cli.out.json(await client.raw(call))
      const tasks = Object.values((await client.call(call, lanesSchema)).lanes).flat()
      if (tasks.length === 0) return cli.out.line('There are no tasks. Add one: svc board add "Write the release notes"')
      cli.out.table([
        { title: 'ID', cell: ({ id }) => id },
        { title: 'LANE', cell: ({ status }) => status },
        { title: 'PRIORITY', cell: task => String(task.priority), expendable: 3 },
        { title: 'ASSIGNEE', cell: ({ assignee }) => harmless(assignee ?? '-'), expendable: 1 },
        { title: 'DONE BEFORE', cell: task => task.dep_count ?? '-', expendable: 2 },
        { title: 'TASK', cell: ({ title }) => harmless(title), flexible: true }
      ], tasks)
    })
}

function addBoardShow (board: Command, cli: Cli): void {
  board.command('show <task>')
    .description('show everything about a task; the start of its id is enough')
    .addOption(boardOption())
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc board show t_0123abcd', 'svc board show 0123'))
    .action(async (id: string, options: BoardOption & { json?: true }, command: Command) => {
      const task = await taskOf(cli.client(command), id, options)
      if (options.json === true) return cli.out.json(task)
      show(cli, task)
    })
}

function show (cli: Cli, task: TaskRecord): void {
  const ids = (list: readonly string[]): string => list.join(', ') || '-'
  cli.out.pairs([
    ['id', task.id],
    ['task', harmless(task.title)],
    ['lane', task.block_reason === null ? task.status : `${task.status}: ${harmless(task.block_reason)}`],
    ['assignee', harmless(task.assignee ?? '-')],
    ['priority', String(task.priority)],
    ['made by', harmless(task.created_by)],
    ['waits for', ids(task.deps.parents)],
    ['wait for it', ids(task.deps.children)],
    ['summary', harmless(task.summary ?? '-')]
  ])
  if (task.body !== '') cli.out.line(`\n${harmless(task.body)}`)
  for (const { profile, state, dur, msg } of task.runs) {
    cli.out.line(harmless(`run of ${profile}: ${state}${dur === null ? '' : ` after ${Math.round(dur)} s`}${msg === null ? '' : `: ${msg}`}`))
  }
  for (const { author, body } of task.comments) cli.out.line(harmless(`${author}: ${body}`))
}

interface AddOptions extends BoardOption {
  readonly body?: string
  readonly to?: string
  readonly assignee?: string
  readonly priority?: number
  readonly after?: readonly string[]
  readonly json?: true
}

function addBoardAdd (board: Command, cli: Cli): void {
  board.command('add <title>')
    .description('add a task')
    .addOption(boardOption())
    .option('--body <text>', 'description of the task')
    .addOption(new Option('--to <lane>', 'lane to create it in').choices(lanes).default('triage'))
    .option('--assignee <name>', 'agent or person')
    .option('--priority <n>', 'higher is worked on first; default 0', numberOf(priority))
    .option('--after <id...>', 'tasks that must be done first')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc board add "Write the release notes"', 'svc board add "Paint the fence" --to ready --assignee painter --priority 2'))
    .action(async (title: string, { board: slug, to, after = [], json, ...given }: AddOptions, command: Command) => {
      const client = cli.client(command)
      const option = slug === undefined ? {} : { board: slug }
      const parents = await Promise.all(after.map(async id => (await taskOf(client, id, option)).id))
      const answer = await client.call(
        { method: 'POST', path: '/api/board/tasks', query: boardQuery(option), body: { title, status: to, ...given, parents } },
        z.looseObject({ task: taskSchema })
      )
      if (json === true) return cli.out.json(answer)
      cli.out.line(`${answer.task.id} is in ${answer.task.status}.`)
    })
}

interface MoveOptions extends BoardOption {
  readonly assignee?: string
  readonly reason?: string
  readonly summary?: string
  readonly json?: true
}

function addBoardMove (board: Command, cli: Cli): void {
  board.command('move <task> <lane>')
    .description(`move a task to another lane: ${lanes.join(', ')}`)
    .addOption(boardOption())
    .option('--assignee <name>', 'also assign it to an agent or a person')
    .option('--reason <text>', 'why it is blocked')
    .option('--summary <text>', 'its result')
    .option('--json', 'print the API response')
    .addHelpText('after', examples('svc board move 0123 ready --assignee painter', 'svc board move 0123 blocked --reason "no paint"'))
    .action(async (id: string, lane: string, { reason, summary, assignee, json, ...option }: MoveOptions, command: Command) => {
      const client = cli.client(command)
      const task = await taskOf(client, id, option)
      const body = { status: lane, assignee, block_reason: reason, summary }
      const moved = await client.call({ method: 'PATCH', path: pathOf`/api/board/tasks/${task.id}`, query: boardQuery(option), body }, taskSchema)
      if (json === true) return cli.out.json(moved)
      cli.out.line(`${moved.id} is in ${moved.status}.`)
    })
}
