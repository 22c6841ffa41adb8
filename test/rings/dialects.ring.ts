import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createFakeEngine } from '../../kernel/testing/index.js'
import { bigramGguf } from '../../plugins/services/demo/bigram-gguf.js'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { containerGateway, embeddedGateway } from '../e2e/engine-gateways.js'
import { FakeHub } from '../plugins/services/hub/fake-hub.js'
import { freePort } from '../ports.js'
import { root } from '../repository.js'
import { upstreamTable } from '../wire/fake-upstream.js'
import { chat, speaking } from '../wire/format/dialect-engines.js'
import { brought, runClient, scriptsBeside } from './support/clients.js'

t.setTimeout(600_000)

interface Clients {
  /** Folder of the scripts that run on Node. */
  readonly scripts: string
  /** Virtual environment of the others. */
  readonly venv: string
}

async function runAll (t: Test, env: Readonly<Record<string, string>>, { scripts, venv }: Clients): Promise<void> {
  for (const file of (await readdir(scripts)).filter(name => name.endsWith('.mjs')).sort()) {
    await t.test(`each call of ${file.replace('.mjs', '')} ends as its users expect`, t => runClient(t, [process.execPath, join(scripts, file)], env))
  }
  for (const name of ['ollama_client', 'llama_index_ollama']) {
    const command = [join(venv, 'bin/python'), join(root, 'test/rings/python', `${name}.py`)]
    await t.test(`each call of ${name} ends as its users expect`, t => runClient(t, command, { ...env, PYTHONDONTWRITEBYTECODE: '1' }))
  }
}

t.test('clients of other dialects as they come', async t => {
  const installed = await brought(t, 'js-clients.sh', 'dialects')
  const venv = await brought(t, 'python-clients.sh', 'dialects')
  if (installed === null || venv === null) return
  const clients = { scripts: await scriptsBeside(t, installed, 'dialects'), venv }
  // it sees pictures, and speaks chat alone
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  upstream.answer(speaking({ '/chat/completions': chat }, ['gpt-9'], { error: { message: 'Invalid URL' } }))
  const hub = await FakeHub.start(t)
  hub.add('org/tiny-GGUF', { files: { 'tiny-Q4_K_M.gguf': bigramGguf() } })
  const files = {
    'etc/svc/upstreams.toml': upstreamTable('far', `${upstream.origin}/v1`),
    'etc/svc/api.env': `HF_ENDPOINT="${hub.url}"\nno_proxy="*"\n`
  }
  // what knows no other address than Ollama's own
  const port = await freePort()
  const settings = `[dialects]\nollama_port = ${port}\n`
  const env = (url: string, engine: string): Record<string, string> =>
    ({ RING_URL: url, RING_OLLAMA: `http://127.0.0.1:${port}`, RING_ENGINE: engine, RING_SENTENCE: demoSentence })
  await t.test('on engines in containers', async t => {
    const gateway = await containerGateway(t, settings, files)
    if (gateway === null) return
    await runAll(t, env(gateway.url, 'llama'), clients)
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
  await t.test('on the embedded engine', async t => {
    const gateway = await embeddedGateway(t, settings, files)
    await runAll(t, env(gateway.url, 'embedded'), clients)
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
})
