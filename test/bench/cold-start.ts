import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createGateway } from '../../kernel/gateway.js'
import { createFakeProviderPlugin } from '../../kernel/testing/index.js'
import textRoutes from '../../plugins/v1/text/index.js'
import { freePort } from '../ports.js'
import type { Bar } from './lists.js'
import { percentile } from './streams.js'

const standIn = fileURLToPath(new URL('./stand-in.js', import.meta.url))

/** Medians in milliseconds: the engine's own start, and a request that finds its slot cold. */
export interface ColdStart {
  readonly engineMs: number
  readonly requestMs: number
}

/** A real child process that needs a second, alone and behind the gateway in turn. */
export async function measureColdStart (home: string, rounds: number): Promise<ColdStart> {
  await mkdir(join(home, 'etc/svc/slots'), { recursive: true })
  await writeFile(join(home, 'etc/svc/svc.toml'), '[slots]\nautostart = false\n[runtime]\ndriver = "process"\n[server]\nlog_level = "error"\n')
  await writeFile(join(home, 'etc/svc/slots/agent.toml'), `type = "llm"\nprovider = "fake"\ndevice = "cpu"\nport = ${await freePort()}\n`)
  const provider = createFakeProviderPlugin({
    processSpec: ({ port }) => [{ command: 'node', args: [standIn, String(port)], label: 'stand-in' }]
  })
  const gateway = createGateway({ builtins: [], plugins: [provider, textRoutes], home, port: 0 })
  const { baseUrl } = await gateway.start()
  const { slots } = gateway.inference()
  const [engine, request]: [number[], number[]] = [[], []]
  try {
    for (let round = 0; round < rounds; round++) {
      engine.push(await ownStart(await freePort()))
      const begun = performance.now()
      const answer = await fetch(`${baseUrl}/v1/chat/completions`, {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"agent","messages":[]}'
      })
      if (answer.status !== 200) throw new Error(`the cold request was answered ${answer.status}: ${await answer.text()}`)
      await answer.arrayBuffer()
      request.push(performance.now() - begun)
      await slots.unload('agent')
    }
  } finally {
    gateway.hurry()
    await gateway.stop()
  }
  return { engineMs: percentile(engine, 50), requestMs: percentile(request, 50) }
}

/** From the start of the process to its first good answer, asked without a pause. */
async function ownStart (port: number): Promise<number> {
  const begun = performance.now()
  const child = spawn(process.execPath, [standIn, String(port)], { stdio: 'ignore' })
  try {
    for (;;) {
      if (child.exitCode !== null) throw new Error('the stand-in engine ended')
      const status = await fetch(`http://127.0.0.1:${port}/health`).then(answer => answer.status, () => 0)
      if (status === 200) return performance.now() - begun
    }
  } finally {
    child.kill()
    await once(child, 'exit')
  }
}

export function coldStartBar ({ engineMs, requestMs }: ColdStart): Bar {
  const limit = engineMs * 1.05 + 30
  return { name: 'a cold start, ms', value: requestMs, limit: `<= ${Math.round(limit)}: the engine's own ${Math.round(engineMs)} and 5 % and 30 ms`, ok: requestMs <= limit }
}
