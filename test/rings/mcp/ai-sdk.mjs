import { createMCPClient } from '@ai-sdk/mcp'
import { address, agent, textOf, tries } from './tries.mjs'

const client = await createMCPClient({ transport: { type: 'http', url: address, headers: { 'X-svc-Agent': agent } } })
const tools = await client.tools()

await tries(async () => Object.keys(await client.tools()), async (name, args, abortSignal) => {
  const result = await tools[name].execute(args, { toolCallId: '1', messages: [], ...(abortSignal === undefined ? {} : { abortSignal }) })
  return { text: textOf(result), isError: result.isError === true }
})
await client.close()
