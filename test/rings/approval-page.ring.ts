import { access } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { z } from 'zod'
import { core, definePlugin, defineTool, type ToolCatalogue } from '../../kernel/contract/index.js'
import { createTestGateway } from '../../kernel/testing/index.js'
import builtins from '../../plugins/index.js'
import { openPage } from './support/chromium.js'
import { lacking } from './support/clients.js'

t.setTimeout(850_000)

t.test('an operator decides on the approval page in a browser, where nothing of an agent runs and no other page can show it', async t => {
  if (await access('/usr/bin/chromium').then(() => false, () => true)) {
    return void lacking(t, 'there is no /usr/bin/chromium; run: test/engines/install-packages.sh browser')
  }
  let tools!: ToolCatalogue
  const plugin = definePlugin({
    name: 'ring-tools',
    kind: 'mcp',
    apiVersion: 1,
    requires: { tools: core.tools },
    register (ctx) {
      tools = ctx.services.tools
      ctx.addTool(defineTool({
        server: 'ring', name: 'guarded', description: 'Waits', gated: true, primary: 'note', input: z.object({ note: z.string() }),
        handler: async () => ({ done: true })
      }))
    }
  })
  const gateway = await createTestGateway({ builtins, plugins: [plugin] })
  t.teardown(() => gateway.close())
  const asked = async (note: string): Promise<string> => {
    const outcome = await tools.call('ring', 'guarded', { note }, { actor: 'mcp:hermes', agent: 'hermes', signal: new AbortController().signal })
    if (outcome.kind !== 'pending') throw new Error(outcome.kind)
    return `${gateway.baseUrl}/api/agent/approvals/${outcome.approvalId}/page`
  }
  const page = await openPage(t)
  const shows = (state: string): string => `document.querySelector('#state')?.dataset.state === '${state}'`

  const nasty = await asked('</pre><script>document.title = "owned"</script><img src=x onerror="document.title=\'owned\'">')
  await page.goto(nasty)
  await page.until(shows('pending'), 'the page is there')
  t.equal(await page.read('document.title'), 'Approval: guarded')
  t.equal(await page.read('document.querySelectorAll("script, img, iframe").length'), 0)
  t.match(await page.read('document.querySelector("#arguments").innerText'), /<script>document\.title/, 'it is read as it was written')
  t.equal(await page.read('getComputedStyle(document.querySelector("#arguments")).overflow'), 'auto', 'and its own style counts')
  await page.click('button[value=approve]')
  await page.until(shows('executed'), 'it ran')

  const second = await asked('second')
  await page.goto(second)
  await page.until(shows('pending'), 'the other page is there')
  await page.click('input[name=reason]')
  await page.type('not today')
  await page.click('button[value=deny]')
  await page.until(shows('denied'), 'it was denied')
  t.match(await page.read('document.body.innerText'), /not today/)

  const third = await asked('third')
  const attack = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><iframe name="target" src="${third}"></iframe>
      <form id="go" method="post" action="${third}" target="target"><input name="decision" value="approve"></form>
      <script>addEventListener('load', () => { go.submit(); setTimeout(() => { document.title = 'sent' }, 500) })</script>`)
  })
  await new Promise<void>(resolve => attack.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    attack.closeAllConnections()
    attack.close()
  })
  // another site, not only another port of this one
  await page.goto(`http://localhost:${(attack.address() as AddressInfo).port}/`)
  await page.until('document.title === "sent"', 'the page of somebody else has tried')
  t.equal(await page.read('(() => { try { return document.querySelector("iframe").contentDocument } catch { return null } })()'), null)
  await page.goto(third)
  await page.until(shows('pending'), 'it waits as before')
})
