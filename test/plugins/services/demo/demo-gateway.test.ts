import t from 'tap'
import { createTestGateway } from '../../../../kernel/testing/test-gateway.js'
import llmServer from '../../../../plugins/providers/llm-server/index.js'
import demo from '../../../../plugins/services/demo/index.js'
import { sentenceFor } from '../../../../plugins/services/demo/sentence.js'
import text from '../../../../plugins/v1/text/index.js'

t.test('from an empty home to a first answer, with nothing installed but this package', async t => {
  const gateway = await createTestGateway({
    files: { 'etc/svc/svc.toml': '[runtime]\ndriver = "process"\nstop_with_gateway = true\n\n[slots]\nautostart = false\n' },
    plugins: [llmServer, demo, text],
    pluginConfig: { 'demo': { provision: true }, 'llm-server': { prefer: 'embedded' } }
  })
  t.teardown(() => gateway.close())
  const ask = async (body: object): Promise<Response> => gateway.fetch('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'agent', messages: [{ role: 'user', content: 'Who are you?' }], ...body })
  })
  const answer = await ask({})
  t.match(await answer.json(), { model: 'svc-demo', choices: [{ message: { content: sentenceFor('svc') }, finish_reason: 'stop' }] })
  const streamed = await (await ask({ stream: true })).text()
  const said = [...streamed.matchAll(/^data: (\{.*\})$/gm)]
    .map(([, json]) => (JSON.parse(json!) as { choices: Array<{ delta: { content?: string } }> }).choices[0]?.delta.content ?? '')
  t.equal(said.join(''), sentenceFor('svc'))
})
