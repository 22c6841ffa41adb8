import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { TEXT_PORTS, textHome } from '../e2e/text-surfaces.js'
import { liveHome, startLive, writeHome } from '../e2e/live-gateway.js'
import { freePort } from '../ports.js'
import { root } from '../repository.js'
import { brought, runClient, scriptsBeside } from './support/clients.js'

t.setTimeout(600_000)

const scripts = ['ai-sdk', 'langchain', 'mcp-remote', 'inspector'] as const

interface Event { readonly happened: Promise<void>, readonly happens: () => void }

function event (): Event {
  let happens = (): void => {}
  const happened = new Promise<void>(resolve => { happens = resolve })
  return { happened, happens }
}

/**
 * A model hub that never answers, so that a call which asks it hangs, and what the programs need to know: `/asked/REPO`
 * and `/left/REPO` answer once the gateway has asked for a repository and has given up, `/restart` once it runs again.
 */
async function openDesk (t: Test, restart: () => Promise<void>): Promise<string> {
  const events = new Map<string, Event>()
  const eventOf = (name: string): Event => {
    const known = events.get(name) ?? event()
    events.set(name, known)
    return known
  }
  const answer = async ({ url = '' }: IncomingMessage, response: ServerResponse): Promise<void> => {
    const repo = /^\/api\/models\/(.*)\/revision\/main$/.exec(url)?.[1]
    if (repo !== undefined) {
      response.once('close', () => eventOf(`/left/${repo}`).happens())
      eventOf(`/asked/${repo}`).happens()
      return
    }
    if (url.endsWith('/README.md')) return
    try {
      if (url === '/restart') await restart()
      else await eventOf(url).happened
      response.end()
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

t.test('clients of the Model Context Protocol as they come', async t => {
  const [packages, venv] = await Promise.all([brought(t, 'js-clients.sh', 'mcp'), brought(t, 'python-clients.sh', 'openai-2')])
  if (packages === null && venv === null) return
  const home = await liveHome(t, { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\n[slots]\nautostart = false\n[plugins.config.llm-server]\nprefer = "embedded"\n' })
  const ports: number[] = []
  while (ports.length < TEXT_PORTS) ports.push(await freePort())
  await writeHome(home, textHome(home, ports))
  const port = await freePort()
  const desk = await openDesk(t, async () => {
    const code = await gateway.kill('SIGTERM')
    gateway = await start()
    if (code !== 0) throw new Error(`the gateway ended with ${String(code)}`)
  })
  const start = () => startLive(t, home, { HF_ENDPOINT: desk }, undefined, [], port)
  let gateway = await start()

  const tries = (name: string, command: readonly string[], cancels = 1): Promise<unknown> =>
    t.test(`each call of ${name} ends as its users expect, and is written down as theirs`, async t => {
      await runClient(t, command, {
        RING_URL: gateway.url, RING_DESK: desk, RING_AGENT: name, RING_ENGINE: 'embedded', RING_SENTENCE: demoSentence, PYTHONDONTWRITEBYTECODE: '1'
      })
      const answer = await fetch(`${gateway.url}/api/activity?action=mcp.tool.invoked&actor=mcp:${name}&limit=1000`)
      const { records } = await answer.json() as { records: Array<{ target: string, outcome: string, error: string | null }> }
      const rows = records.map(({ target, outcome, error }) => `${target} ${outcome}${error === null ? '' : `: ${error}`}`)
      for (const row of ['admin/slot_list ok', 'admin/model_pull pending']) t.ok(rows.includes(row), row, { rows })
      // the gateway gives up on a silent hub after a while too: that is no cancelled call
      t.equal(rows.filter(row => /^admin\/model_inspect error: .* was cancelled/.test(row)).length, cancels, 'cancelled calls', { rows })
    })
  if (packages !== null) {
    const folder = await scriptsBeside(t, packages, 'mcp')
    for (const name of scripts) await tries(name, [process.execPath, join(folder, `${name}.mjs`)])
  }
  if (venv !== null) await tries('mcp-python', [join(venv, 'bin/python'), join(root, 'test/rings/python/mcp_client.py')], 2)
  t.equal(await gateway.kill('SIGTERM'), 0)
})
