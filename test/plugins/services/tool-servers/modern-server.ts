/* A tool server of the newest revision, over stdio. */
import { inputRequired, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

serveStdio(() => {
  const server = new McpServer({ name: 'modern', version: '2.0' })
  server.registerTool('greet', { description: 'Greets', inputSchema: z.object({ name: z.string() }) },
    ({ name }) => ({ content: [{ type: 'text', text: `Hello ${name}` }] }))
  server.registerTool('ask', { description: 'Asks its caller' }, () => inputRequired({
    inputRequests: { sure: inputRequired.elicit({ message: 'Sure?', requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } } }) }
  }))
  return server
})
