import type { ToolCatalogue, ToolEntry, ToolTarget, ToolView, ToolViewer } from 'svc-gateway/plugin'
import { jointNames } from './joint-names.js'
import { ToolIndex } from './tool-index.js'

export const ALL = 'all'
export const SEARCH = 'tool_search'
export const CALL = 'tool_call'

/** Views of agents that search are kept for so many of them: one may be called anything. */
const MOST_INDEXES = 16

type Args = Readonly<Record<string, unknown>>

/** The tools of all servers under joint names, as the catalogue is at this moment. */
export class JointView implements ToolView {
  readonly #tools: ToolCatalogue
  readonly #most: number
  readonly #byName: ReadonlyMap<string, ToolEntry>
  /** By server and own name. */
  readonly #names: ReadonlyMap<string, string>
  readonly #servers: readonly string[]
  readonly #indexes = new Map<string | null, ToolIndex>()

  /** @param most tools that are listed */
  constructor (tools: ToolCatalogue, most: number) {
    this.#tools = tools
    this.#most = most
    this.#servers = tools.servers()
      .filter(({ source }) => source?.view === undefined && source?.exposure?.all !== false).map(({ id }) => id)
    const servers = new Set(this.#servers)
    this.#byName = jointNames(tools.all().filter(({ server }) => servers.has(server)), [SEARCH, CALL])
    this.#names = new Map([...this.#byName].map(([name, tool]) => [keyOf(tool), name]))
  }

  readonly list = (viewer: ToolViewer): readonly ToolEntry[] => {
    const groups = this.#groups(viewer)
    const all = groups.flat()
    if (all.length <= this.#most) return Object.freeze(all)
    const own = [SEARCH, CALL].flatMap(name => this.#tools.find(ALL, name) ?? [])
    let room = this.#most - own.length
    const fitting = groups.toSorted((a, b) => a.length - b.length).filter(group => {
      room -= group.length
      return room >= 0
    })
    return Object.freeze([...own, ...groups.filter(group => fitting.includes(group)).flat()])
  }

  readonly find = (name: string): ToolEntry | null => {
    const tool = this.#byName.get(name)
    return tool === undefined ? null : this.#shown(tool)
  }

  readonly target = (name: string, args: Args): ToolTarget | null => {
    if (name !== CALL) return this.#targetOf(name, args)
    const { name: wanted, arguments: inner = {} } = args
    if (typeof wanted !== 'string' || typeof inner !== 'object' || inner === null || Array.isArray(inner)) return null
    return this.#targetOf(wanted, inner as Args)
  }

  /** Those that an agent may call, best first. */
  search (query: string, { agent }: ToolViewer): readonly ToolEntry[] {
    let index = this.#indexes.get(agent)
    if (index === undefined) {
      if (this.#indexes.size >= MOST_INDEXES) this.#indexes.clear()
      index = new ToolIndex(this.#groups({ agent }).flat())
      this.#indexes.set(agent, index)
    }
    return index.find(query)
  }

  #targetOf (name: string, args: Args): ToolTarget | null {
    const tool = this.#byName.get(name)
    return tool === undefined ? null : { server: tool.server, name: tool.name, args }
  }

  #groups (viewer: ToolViewer): readonly ToolEntry[][] {
    return this.#servers.map(server => this.#tools.list(server, viewer).map(tool => this.#shown(tool)))
  }

  #shown (tool: ToolEntry): ToolEntry {
    return { ...tool, server: ALL, name: this.#names.get(keyOf(tool))! }
  }
}

function keyOf ({ server, name }: ToolEntry): string {
  return `${server}/${name}`
}
