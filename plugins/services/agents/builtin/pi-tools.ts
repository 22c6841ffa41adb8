/**
 * The text of pi's extension that offers the tools of a tool server as its own. Where the server does not answer, pi starts
 * without them and says so.
 */
export function piTools (url: string, agent: string): string {
  return `// written by svc; it is replaced at each start
const url = ${JSON.stringify(url)}
const headers = {
  'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25',
  'x-svc-agent': ${JSON.stringify(agent)}
}
let id = 0

async function request (method, params, signal) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params })
  const answer = await fetch(url, { method: 'POST', headers, body, signal })
  const text = await answer.text()
  const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream')
  const messages = isStream ? text.split('\\n').filter(line => line.startsWith('data:')).map(line => JSON.parse(line.slice(5))) : [JSON.parse(text)]
  const message = messages.find(each => each.result !== undefined || each.error !== undefined)
  if (message?.result === undefined) throw new Error(message?.error?.message ?? 'the tool server gave no answer')
  return message.result
}

export default async function (pi) {
  const tools = []
  try {
    let cursor
    do {
      const page = await request('tools/list', cursor === undefined ? {} : { cursor }, AbortSignal.timeout(10_000))
      tools.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor !== undefined)
  } catch (error) {
    console.error('the tools of ' + url + ' are not available: ' + error.message)
  }
  for (const tool of tools) {
    pi.registerTool({
      name: 'svc_' + tool.name,
      label: tool.title ?? tool.name,
      description: tool.description ?? tool.name,
      parameters: tool.inputSchema,
      async execute (_call, params, signal) {
        const { content, isError } = await request('tools/call', { name: tool.name, arguments: params }, signal)
        const shown = content.filter(part => part.type === 'text' || part.type === 'image')
        if (isError === true) throw new Error(shown.map(part => part.text ?? '').join('\\n') || 'the tool failed')
        return { content: shown, details: {} }
      }
    })
  }
}
`
}
