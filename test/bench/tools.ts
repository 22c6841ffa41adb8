import { join } from 'node:path'
import type { Bar } from './lists.js'
import type { PostCall } from './load.js'
import { atLeast, measurePlain, type Plain, type PlainTarget } from './plain.js'
import { startProgram, type BenchServer } from './servers.js'

const TOOLS = 150
const WARM_CALLS = 4_000
const LISTS = 400
const MODERN = '2026-07-28'
const ACCEPT = 'application/json, text/event-stream'
const example = 'the SDK\'s example'
const own = '/mcp/admin'
const modern = `/mcp/admin, ${MODERN}`
const passed = '/mcp/<id> before the SDK\'s'

/** Tool calls as in `Plain`; milliseconds of processor time that one list of many tools takes, by revision. */
export interface ToolsResult {
  readonly calls: Plain
  readonly lists: ReadonlyMap<string, number>
}

/** Calls of a tool that has nothing to do, beside those of the protocol's own example server in the same run. */
export async function measureTools (
  home: string, rounds: number, seconds: number, say: (text: string) => void
): Promise<ToolsResult> {
  const servers: BenchServer[] = []
  const start = async (name: string, ...args: readonly string[]): Promise<BenchServer> => {
    const server = await startProgram(name, args)
    servers.push(server)
    return server
  }
  try {
    const sdk = await start('sdk-tool-server')
    const gateway = await start('tools-gateway', join(home, 'tools'), `${sdk.origin}/mcp`, String(TOOLS))
    const targets = new Map<string, Required<PlainTarget> & { readonly call: PostCall }>([
      [example, { server: sdk, call: toolCall('/mcp', 'version') }],
      [own, { server: gateway, call: toolCall('/mcp/admin', 'version_info') }],
      [modern, { server: gateway, call: modernPost('/mcp/admin', 'tools/call', { name: 'version_info', arguments: {} }) }],
      [passed, { server: gateway, call: toolCall('/mcp/sdk', 'version') }]
    ])
    for (const [name, { server, call }] of targets) {
      await until(server, call, name)
      // by number: what a slow machine has not warmed up costs twice as much
      await many(server, call, WARM_CALLS)
    }
    const calls = await measurePlain(targets, rounds, seconds, say)
    const lists = new Map<string, number>()
    for (const [revision, call] of [['2025-11-25', post('/mcp/many', 'tools/list', {})], [MODERN, modernPost('/mcp/many', 'tools/list', {})]] as const) {
      lists.set(revision, await cpuOf(gateway, call))
    }
    return { calls, lists }
  } finally {
    for (const server of servers.reverse()) await server.stop()
  }
}

function post (path: string, method: string, params: object, headers: Readonly<Record<string, string>> = {}): PostCall {
  return { path, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }), headers: { accept: ACCEPT, ...headers } }
}

function toolCall (path: string, name: string): PostCall {
  return post(path, 'tools/call', { name, arguments: {} })
}

function modernPost (path: string, method: string, params: { readonly name?: string, readonly arguments?: object }): PostCall {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MODERN,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {}
  }
  const name = params.name === undefined ? {} : { 'mcp-name': params.name }
  return post(path, method, { ...params, _meta }, { 'mcp-protocol-version': MODERN, 'mcp-method': method, ...name })
}

async function ask (server: BenchServer, { path, body, headers }: PostCall): Promise<string> {
  const answer = await fetch(`${server.origin}${path}`, { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } })
  return await answer.text()
}

/** A tool server that the gateway reaches is learned of in its own time. */
async function until (server: BenchServer, call: PostCall, what: string): Promise<void> {
  for (const end = performance.now() + 20_000; ;) {
    const text = await ask(server, call)
    if (text.includes('"result"') && text.includes('version') && !text.includes('isError')) return
    if (performance.now() > end) throw new Error(`${what} answers ${text.slice(0, 500)}`)
    await new Promise(resolve => { setTimeout(resolve, 100) })
  }
}

/** So many, four at a time. */
async function many (server: BenchServer, call: PostCall, count: number): Promise<void> {
  let left = count
  await Promise.all(Array.from({ length: 4 }, async () => {
    while (left-- > 0) await ask(server, call)
  }))
}

async function cpuOf (server: BenchServer, call: PostCall): Promise<number> {
  const text = await ask(server, call)
  if (!text.includes(`tool_${TOOLS - 1}"`)) throw new Error(`a list without its tools: ${text.slice(0, 500)}`)
  await many(server, call, LISTS)
  const before = await server.cpuMs()
  await many(server, call, LISTS)
  return (await server.cpuMs() - before) / LISTS
}

export function toolBars ({ calls, lists }: ToolsResult): readonly Bar[] {
  const of = (name: string): number => calls.get(name)!.many.requestsPerS / calls.get(example)!.many.requestsPerS
  const added = calls.get(passed)!.one.p50 - calls.get(example)!.one.p50
  return [
    atLeast('tools/call on /mcp/admin, calls a second of the SDK\'s example server', of(own), 1),
    atLeast('tools/call on /mcp/<id> in front of that server, calls a second of it', of(passed), 0.5),
    { name: 'tools/call on /mcp/<id>: added p50 at one client, ms', value: added, limit: '< 2', ok: added < 2 },
    ...[...lists].map(([revision, ms]) => (
      { name: `tools/list of ${TOOLS} tools, ${revision}, ms of processor time`, value: ms, limit: '< 2', ok: ms < 2 }
    ))
  ]
}

export function toolLines ({ calls, lists }: ToolsResult): readonly string[] {
  const number = (value: number, width: number, digits = 2): string => value.toFixed(digits).padStart(width)
  return [
    `\n${'tools/call'.padEnd(30)} calls/s at 32   p50 / p99 ms at 1   p50 / p99 ms at 32   CPU us   errors`,
    ...[...calls].map(([name, { one, many, cpuUs }]) =>
      `${name.padEnd(30)} ${number(many.requestsPerS, 13, 0)} ${number(one.p50, 10)} / ${number(one.p99, 6)} ${number(many.p50, 11)} / ${number(many.p99, 6)} ` +
      `${number(cpuUs, 8, 0)} ${String(one.errors + many.errors).padStart(8)}`),
    `tools/list of ${TOOLS} tools, ms of processor time: ${[...lists].map(([revision, ms]) => `${ms.toFixed(2)} (${revision})`).join(', ')}`
  ]
}
