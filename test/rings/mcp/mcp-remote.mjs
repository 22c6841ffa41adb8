import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { check } from '../js/check.mjs'
import { address, agent, textOf, tries } from './tries.mjs'

const home = join(import.meta.dirname, '..')
const client = new Client({ name: 'desktop', version: '1' })
await client.connect(new StdioClientTransport({
  command: process.execPath,
  args: [join(home, 'node_modules/mcp-remote/dist/proxy.js'), address, '--allow-http', '--header', `X-svc-Agent:${agent}`],
  env: { PATH: process.env.PATH, HOME: home, MCP_REMOTE_CONFIG_DIR: join(home, 'mcp-auth') },
  stderr: 'ignore'
}))

const names = async () => (await client.listTools()).tools.map(({ name }) => name)
await tries(names, async (name, args, signal) => {
  const result = await client.callTool({ name, arguments: args }, undefined, { signal })
  return { text: textOf(result), isError: result.isError === true }
})
await check('hears of progress', async () => {
  const told = []
  await client.callTool({ name: 'slot_load', arguments: { name: 'agent' } }, undefined, { onprogress: step => told.push(step) })
  assert.equal(told[0]?.message, 'slot_load begins')
  assert.ok(told.every(({ progress }, i) => i === 0 || progress > told[i - 1].progress), JSON.stringify(told))
})
await client.close()
