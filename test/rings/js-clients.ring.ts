import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeEngine } from '../../kernel/testing/index.js'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { containerGateway, embeddedGateway } from '../e2e/engine-gateways.js'
import { upstreamTable } from '../wire/fake-upstream.js'
import { chat, speaking } from '../wire/format/dialect-engines.js'
import { brought, runClient, scriptsBeside } from './support/clients.js'

t.setTimeout(600_000)

const callForShape = '<tool_call>\n{"name": "json", "arguments": {"mood": "good", "sure": true}}\n</tool_call>'

const notClients = new Set(['check.mjs'])

async function runAll (t: Test, url: string, engine: string, scripts: string): Promise<void> {
  for (const file of (await readdir(scripts)).filter(name => name.endsWith('.mjs') && !notClients.has(name)).sort()) {
    const env = { RING_URL: url, RING_ENGINE: engine, RING_SENTENCE: demoSentence }
    await t.test(`each call of ${file.replace('.mjs', '')} ends as its users expect`, t => runClient(t, [process.execPath, join(scripts, file)], env))
  }
}

t.test('JavaScript clients as they come', async t => {
  const installed = await brought(t, 'js-clients.sh', 'sdks')
  if (installed === null) return
  const scripts = await scriptsBeside(t, installed, 'js')
  // it sees pictures, and speaks chat alone
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  upstream.answer(speaking({ '/chat/completions': chat }, ['gpt-9'], { error: { message: 'Invalid URL' } }))
  const files = {
    'etc/svc/upstreams.toml': upstreamTable('far', `${upstream.origin}/v1`),
    // its model calls the tool that the AI SDK makes of a shape, and is found in its folder
    'var/lib/svc/models/former.gguf': bigramGguf({ sentence: callForShape }),
    'etc/svc/slots/former.toml': 'type = "llm"\ndevice = "cpu"\nchat_template = "tools"\n[model]\ndefault = "former"\ncontext_size = 8192\n'
  }
  await t.test('on engines in containers', async t => {
    // the AI SDK asks models of that name for no form of the answer, and reads Base64
    const gateway = await containerGateway(t, '[aliases]\n"gpt-image-1" = "sdxl-turbo"\n', files)
    if (gateway === null) return
    await runAll(t, gateway.url, 'llama', scripts)
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
  await t.test('on the embedded engine', async t => {
    const gateway = await embeddedGateway(t, '', files)
    await runAll(t, gateway.url, 'embedded', scripts)
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
})
