import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { address, agent, tries } from './tries.mjs'

const client = new MultiServerMCPClient({ mcpServers: { svc: { transport: 'http', url: address, headers: { 'X-svc-Agent': agent } } } })
const tools = new Map((await client.getTools()).map(tool => [tool.name, tool]))

/** Its tools are listed once; the client below them lists anew. */
async function names () {
  return (await (await client.getClient('svc')).listTools()).tools.map(({ name }) => name)
}

await tries(names, async (name, args, signal) => {
  try {
    return { text: await tools.get(name).invoke(args, { signal }), isError: false }
  } catch (error) {
    // an aborted call comes as an exception of the tool too
    signal?.throwIfAborted()
    // it holds arguments against the listed schema by itself, and asks nobody then
    if (error.constructor.name === 'ToolInputParsingException') return { text: `${error.message}: ${error.output}`, isError: true }
    if (error.name !== 'ToolException') throw error
    return { text: error.message, isError: true }
  }
})
await client.close()
