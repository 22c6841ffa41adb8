import {
  svcError, type ToolCaller, type ToolCatalogue, type ToolContent, type ToolEntry, type ToolOutcome
} from 'svc-gateway/plugin'
import { z } from 'zod'
import type { OmniTool, ToolResult } from './tool.js'

/** What models and requests of a chat can bear. */
const MOST_TOOLS = 128
/** How long a model waits for an operator; then it is told that the call still waits. */
const APPROVAL_WAIT_MS = 300_000

/** Tools that a request names: servers with all of theirs, and single ones as `<tool>` of the gateway or `<server>/<tool>`. */
export interface NamedTools {
  readonly servers: readonly string[]
  /** Empty: all of the servers'. */
  readonly tools: readonly string[]
}

export interface NamedToolServices {
  readonly catalogue: ToolCatalogue
  readonly caller: Omit<ToolCaller, 'signal'>
  /** Calls back once, after some milliseconds; returns what forgets it. */
  readonly after: (ms: number, fn: () => void) => () => void
}

const OWN_SERVER = 'admin'

/**
 * The tools of the catalogue that a request asks for, as its agent may call them. Throws for what there is not: a request that
 * names a tool is not to be answered without it.
 * @param taken names that are used already; a tool with one of them gets its server's name before its own
 */
export function namedTools (
  { servers, tools }: NamedTools, services: NamedToolServices, taken: ReadonlySet<string>
): readonly OmniTool[] {
  const { catalogue, caller: { agent } } = services
  const entries = new Map<string, ToolEntry>()
  const add = (entry: ToolEntry): void => { entries.set(`${entry.server}/${entry.name}`, entry) }
  for (const server of servers) {
    if (!isOffered(catalogue, server)) throw unknown(`there is no tool server '${server}'`, 'omni.servers')
    if (tools.length === 0) catalogue.list(server, { agent }).forEach(add)
  }
  for (const tool of tools) add(findTool(tool, servers, catalogue, agent))
  if (entries.size > MOST_TOOLS) {
    throw svcError('validation.invalid', `omni names ${entries.size} tools, and a request may have ${MOST_TOOLS}; name them one by one in omni.tools`, { param: 'omni' })
  }
  const used = new Set(taken)
  return [...entries.values()].map(entry => {
    const name = used.has(entry.name) ? `${entry.server}_${entry.name}`.slice(0, 64) : entry.name
    used.add(name)
    return omniTool(entry, name, services)
  })
}

function findTool (named: string, servers: readonly string[], catalogue: ToolCatalogue, agent: string | null): ToolEntry {
  const slash = named.indexOf('/')
  const tool = named.slice(slash + 1)
  const places = slash !== -1 ? [named.slice(0, slash)] : servers.length > 0 ? servers : [OWN_SERVER]
  for (const server of places) {
    const found = isOffered(catalogue, server) ? catalogue.list(server, { agent }).find(({ name }) => name === tool) : undefined
    if (found !== undefined) return found
  }
  throw unknown(`no tool '${named}' is available to this request from ${places.join(', ')}`, 'omni.tools')
}

function isOffered (catalogue: ToolCatalogue, server: string): boolean {
  const known = catalogue.server(server)
  return known !== null && known.source?.exposure?.chats !== false
}

function unknown (what: string, param: string): Error {
  return svcError('mcp.unknown_tool', `${what}; GET /api/tools/openapi.json lists those of the gateway`, { param })
}

function omniTool (entry: ToolEntry, name: string, services: NamedToolServices): OmniTool {
  const { server, name: tool, description, inputSchema, gated } = entry
  const waits = gated ? ' An operator has to approve each call.' : ''
  return {
    name,
    description: `${description}${waits}`,
    parameters: z.looseObject({}),
    inputSchema,
    server,
    run: async (args, signal) => {
      const outcome = await services.catalogue.call(server, tool, args as Record<string, unknown>, { ...services.caller, signal })
      if (outcome.kind !== 'pending') return resultOf(outcome)
      return { ...await decided(outcome.approvalId, services, signal), approvalId: outcome.approvalId }
    }
  }
}

/** What became of a call that waits for an operator. */
async function decided (id: string, { catalogue, after }: NamedToolServices, signal: AbortSignal): Promise<ToolResult> {
  const patience = new AbortController()
  const forget = after(APPROVAL_WAIT_MS, () => patience.abort())
  try {
    return resultOf(await catalogue.settled(id, AbortSignal.any([signal, patience.signal])))
  } catch (error) {
    if (!patience.signal.aborted || signal.aborted) throw error
    return { told: { status: 'pending_approval', approval_id: id, note: 'no operator has decided yet; the call is still pending, tell the user' } }
  } finally {
    forget()
  }
}

/** Throws what failed: the model is told its message. */
function resultOf (outcome: ToolOutcome): ToolResult {
  switch (outcome.kind) {
    case 'done': return { told: outcome.value }
    case 'content': return { told: contentOf(outcome.content) }
    case 'failed': throw new Error(`${outcome.error.code}: ${outcome.error.message}`, { cause: outcome.error })
    case 'pending': throw new TypeError('a pending call has no result')
  }
}

function contentOf ({ content, structuredContent, isError }: ToolContent): unknown {
  const texts = content.map(part => (part as { readonly text?: unknown }).text).filter(text => typeof text === 'string')
  if (isError === true) throw new Error(texts.join('\n') || 'the tool failed and did not say why')
  return structuredContent ?? (texts.length === content.length ? texts.join('\n') : content)
}
