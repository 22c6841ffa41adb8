import { join } from 'node:path'
import t, { type Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { containerGateway, embeddedGateway } from '../e2e/engine-gateways.js'
import { root } from '../repository.js'
import { brought, runClient } from './support/clients.js'

t.setTimeout(600_000)

/** The programs of `rings/python`, by the folder of packages that has what they import. */
const programs = {
  'openai-2': ['openai_client', 'litellm_library', 'llama_index_openai', 'llama_index_openai_like', 'instructor_library'],
  'openai-3': ['openai_client', 'anthropic_client', 'langchain_openai_client', 'llm_program', 'openai_agents'],
  'pydantic-ai': ['pydantic_ai_library']
}

async function runAll (t: Test, url: string, engine: string, venvs: Readonly<Record<string, string>>): Promise<void> {
  const env = {
    RING_URL: url, RING_ENGINE: engine, RING_SENTENCE: demoSentence,
    // the packages are compiled already, and the sources stay clean
    PYTHONDONTWRITEBYTECODE: '1',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True'
  }
  for (const [packages, names] of Object.entries(programs)) {
    for (const name of names) {
      const command = [join(venvs[packages]!, 'bin/python'), join(root, 'test/rings/python', `${name}.py`)]
      await t.test(`each call of ${name} with ${packages} ends as its users expect`, t => runClient(t, command, env))
    }
  }
}

t.test('Python clients as they come', async t => {
  const venvs: Record<string, string> = {}
  for (const packages of Object.keys(programs)) {
    const folder = await brought(t, 'python-clients.sh', packages)
    if (folder === null) return
    venvs[packages] = folder
  }
  await t.test('on engines in containers', async t => {
    const gateway = await containerGateway(t)
    if (gateway === null) return
    await runAll(t, gateway.url, 'llama', venvs)
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
  await t.test('on the embedded engine', async t => {
    const gateway = await embeddedGateway(t)
    await runAll(t, gateway.url, 'embedded', venvs)
    t.equal(await gateway.kill('SIGTERM'), 0)
  })
})
