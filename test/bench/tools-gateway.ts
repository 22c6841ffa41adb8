import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import builtins from '../../plugins/index.js'
import { definePlugin, defineTool } from '../../kernel/contract/index.js'
import { createGateway } from '../../kernel/gateway.js'
import { FakeEngineRuntime } from '../../kernel/testing/index.js'

/**
 * The gateway as it ships, with a third-party tool server behind `/mcp/sdk`, and a plugin that brings as many tools as
 * comes as a number.
 */
const [home, url, count] = [process.argv[2]!, process.argv[3]!, Number(process.argv[4])]

const many = definePlugin({
  name: 'many-tools',
  kind: 'mcp',
  apiVersion: 1,
  register: ctx => {
    for (let i = 0; i < count; i++) {
      ctx.addTool(defineTool({
        server: 'many',
        name: `tool_${i}`,
        title: `Tool ${i}`,
        description: `Does the thing of number ${i}, and tells how it went. Call it when that thing is to be done.`,
        input: z.object({
          name: z.string().min(1).max(64).meta({ description: 'Which one' }),
          count: z.int().min(0).max(100).optional().meta({ description: 'How often' }),
          mode: z.enum(['fast', 'exact']).optional().meta({ description: 'How' })
        }),
        readOnly: true,
        handler: ({ input }) => Promise.resolve(input)
      }))
    }
  }
})

const servers = join(home, 'etc/svc/mcp-servers')
await mkdir(servers, { recursive: true })
await writeFile(join(home, 'etc/svc/svc.toml'), '[slots]\nautostart = false\n[server]\nlog_level = "warn"\n')
await writeFile(join(servers, 'sdk.toml'), `url = ${JSON.stringify(url)}\ntransport = "streamable-http"\n`)
const gateway = createGateway({ builtins, plugins: [many], home, port: 0, runtime: new FakeEngineRuntime() })
const { baseUrl } = await gateway.start()
process.stdout.write(`${JSON.stringify({ port: Number(new URL(baseUrl).port) })}\n`)
process.on('message', () => {
  globalThis.gc?.()
  process.send!({ rss: process.memoryUsage().rss, cpu: process.cpuUsage() })
})
process.on('disconnect', () => {
  gateway.hurry()
  void gateway.stop().then(() => process.exit(0))
})
