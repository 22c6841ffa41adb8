import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

/** The yardstick for tool calls: the stateless example server of the protocol's own package, with a tool that answers at once. */
function exampleServer (): McpServer {
  const server = new McpServer({ name: 'stateless-streamable-http-server', version: '1.0.0' }, { capabilities: { logging: {} } })
  server.registerTool('version', { description: 'Tells the version' }, () => ({ content: [{ type: 'text', text: '{"version":"1.0.0"}' }] }))
  return server
}

const app = createMcpExpressApp()
app.post('/mcp', async (req: IncomingMessage & { readonly body: unknown }, res: ServerResponse) => {
  const server = exampleServer()
  const transport = new StreamableHTTPServerTransport({})
  await server.connect(transport as Parameters<McpServer['connect']>[0])
  await transport.handleRequest(req, res, req.body)
  res.on('close', () => {
    void transport.close()
    void server.close()
  })
})
app.all('/mcp', (_req: IncomingMessage, res: ServerResponse) => {
  res.writeHead(405).end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message: 'Method not allowed.' }, id: null }))
})
const server = app.listen(0, '127.0.0.1', () => process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`))
process.on('message', () => process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() }))
process.on('disconnect', () => process.exit(0))
