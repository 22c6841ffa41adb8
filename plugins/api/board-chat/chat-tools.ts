import type { ToolCatalogue, ToolEntry } from 'svc-gateway/plugin'
import { z } from 'zod'

type Args = Readonly<Record<string, unknown>>

/** A tool as the model of a chat knows it, and the tool of the catalogue behind it. */
interface Alias {
  readonly server: string
  readonly tool: string
  /** Works on the board of the chat. */
  readonly onBoard?: true
  /** Where the model gives other arguments than the tool takes. */
  readonly given?: {
    readonly description: string
    readonly input: z.ZodObject
    readonly args: (input: Args) => Args
  }
}

export interface ChatTool {
  readonly name: string
  readonly entry: ToolEntry
  /** As a chat request declares it. */
  readonly declared: object
  /** Throws a `ZodError` for arguments that do not fit. */
  readonly args: (given: Args) => Args
}

const task = z.string().meta({ description: 'Id of the task' })

function alias (server: string, tool: string, onBoard?: true): Alias {
  return { server, tool, ...(onBoard === undefined ? {} : { onBoard }) }
}

/** A change of one task with few arguments, which small models make fewer mistakes with. */
function change<S extends z.ZodRawShape> (description: string, shape: S, args: (input: Args) => Args): Alias {
  const input = z.strictObject({ task_id: task, ...shape })
  return { ...alias('admin', 'board_update', true), given: { description, input, args: given => ({ task_id: given.task_id, ...args(given) }) } }
}

const aliases: Readonly<Record<string, Alias>> = {
  get_board: alias('admin', 'board_list', true),
  get_task: alias('admin', 'board_task', true),
  get_assignees: alias('board', 'get_assignees', true),
  get_orchestration: alias('board', 'get_orchestration'),
  create_task: alias('admin', 'board_add', true),
  move_task: change('Moves a task to another lane.', { status: z.string().meta({ description: 'The lane' }) }, ({ status }) => ({ status })),
  assign_task: change('Assigns a task to an agent or a person; null unassigns it.', { assignee: z.string().nullable() }, ({ assignee }) => ({ assignee })),
  block_task: change('Blocks a task, with the reason.', { reason: z.string() }, ({ reason }) => ({ status: 'blocked', block_reason: reason })),
  comment_task: alias('admin', 'board_comment', true),
  add_dependency: alias('admin', 'board_link', true),
  remove_dependency: alias('board', 'remove_dependency', true),
  specify_task: alias('board', 'specify_task', true),
  decompose_task: alias('board', 'decompose_task', true),
  nudge_dispatcher: alias('board', 'nudge_dispatcher'),
  update_orchestration: alias('board', 'update_orchestration'),
  list_slots: alias('admin', 'slot_list'),
  get_slot: alias('admin', 'slot_status'),
  slot_load: alias('admin', 'slot_load'),
  slot_unload: alias('admin', 'slot_unload'),
  slot_restart: alias('admin', 'slot_restart'),
  list_models: alias('admin', 'model_list'),
  hardware_stats: alias('admin', 'hardware_probe'),
  list_agents: alias('board', 'list_agents', true),
  // everything else that the gateway can do
  find_tool: alias('all', 'tool_search'),
  call_tool: alias('all', 'tool_call')
}

/** Whether a call of that name reaches the gateway behind the board. */
export function isOfPlatform (name: string): boolean {
  const alias = Object.hasOwn(aliases, name) ? aliases[name]! : null
  return alias !== null && alias.server !== 'board' && !alias.tool.startsWith('board_')
}

/** What the agent of a chat may use of them at this moment, by their names. */
export function chatTools (catalogue: ToolCatalogue, agent: string | null, board: string): ReadonlyMap<string, ChatTool> {
  const tools = Object.entries(aliases).flatMap(([name, { server, tool, onBoard, given }]): ChatTool[] => {
    if (catalogue.server(server) === null) return []
    // those that reach the other tools are not listed where the list has room for all of them
    const listed = catalogue.list(server, { agent })
    const entry = server === 'all' ? catalogue.find(server, tool) : listed.find(each => each.name === tool)
    if (entry === null || entry === undefined) return []
    const description = `${given?.description ?? entry.description}${entry.gated ? ' An operator has to approve each call.' : ''}`
    const { $schema: _schema, ...parameters } = given === undefined ? entry.inputSchema : z.toJSONSchema(given.input)
    return [{
      name,
      entry,
      declared: { type: 'function', function: { name, description, parameters } },
      args: input => {
        const args = given === undefined ? input : given.args(given.input.parse(input))
        return onBoard === true ? { ...args, board } : args
      }
    }]
  })
  return new Map(tools.map(tool => [tool.name, tool]))
}
