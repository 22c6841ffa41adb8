import t from 'tap'
import messageRoutes from '../../../plugins/v1/messages/index.js'
import responseRoutes from '../../../plugins/v1/responses/index.js'
import { createFakeEngine } from '../../../kernel/testing/index.js'
import { wireGateway } from '../wire-gateway.js'

const slot = (more: string): string => `type = "llm"\nprovider = "fake"\ndevice = "cpu"\n${more}[model]\ndefault = "fake-model"\n`
const JSON_TYPE = { 'content-type': 'application/json' }

t.test('a slot\'s reasoning default is for requests that say nothing', async t => {
  const upstream = await createFakeEngine()
  t.teardown(() => upstream.close())
  upstream.answer(({ url, body }) => ({ headers: JSON_TYPE, chunks: [url === '/v1/models' ? '{"data":[{"id":"far"}]}' : body] }))
  const gateway = await wireGateway(t, {
    plugins: [messageRoutes, responseRoutes],
    files: {
      'etc/svc/slots/agent.toml': slot(''),
      'etc/svc/slots/yes.toml': slot('enable_thinking = true\n'),
      'etc/svc/slots/no.toml': slot('enable_thinking = false\n'),
      'etc/svc/upstreams.toml': `[[upstream]]\nname = "far"\nurl = "${upstream.origin}/v1"\nauth_style = "none"\n`
    },
    onStart: ({ engine }) => engine.answer(({ body }) => ({ headers: JSON_TYPE, chunks: [body] }))
  })
  /** What the engine gets, with the model taken out. */
  const seen = async (path: string, model: string, rest: string): Promise<string> => {
    const response = await gateway.fetch(path, { method: 'POST', body: `{"model":"${model}"${rest}}` })
    return (await response.text()).replace(/"model":"[^"]*"/, '')
  }
  const chat = '/v1/chat/completions'
  const on = '"chat_template_kwargs":{"enable_thinking":true},'
  const off = '"chat_template_kwargs":{"enable_thinking":false},'
  const rows: Array<[what: string, path: string, model: string, rest: string, expected: string]> = [
    ['nothing said, slot unset', chat, 'agent', ', "a" : 1.0', '{, "a" : 1.0}'],
    ['nothing said', chat, 'yes', ', "a" : 1.0', `{${on}, "a" : 1.0}`],
    ['nothing said', chat, 'no', '', `{${off}}`],
    ['null says nothing', chat, 'no', ',"chat_template_kwargs":null', '{,"chat_template_kwargs":{"enable_thinking":false}}'],
    ['other kwargs', chat, 'yes', ',"chat_template_kwargs":{ "x" : 1e0 }', '{,"chat_template_kwargs":{ "enable_thinking":true,"x" : 1e0 }}'],
    ['said in the kwargs', chat, 'yes', ',"chat_template_kwargs":{ "enable_thinking" : false }', '{,"chat_template_kwargs":{ "enable_thinking" : false }}'],
    ['said in the kwargs, twice', chat, 'yes', ',"thinking":true,"chat_template_kwargs":{"enable_thinking":false}', '{,"thinking":true,"chat_template_kwargs":{"enable_thinking":false}}'],
    ['a boolean at the top moves', chat, 'yes', ',"enable_thinking":false', `{${off}}`],
    ['a boolean at the top moves, also when the slot is unset', chat, 'agent', ',"thinking":true,"a":1', `{${on},"a":1}`],
    ['a boolean at the top goes into the kwargs', chat, 'no', ',"thinking":true,"chat_template_kwargs":{"x":1}', '{,"chat_template_kwargs":{"enable_thinking":true,"x":1}}'],
    ['thinking as an object', chat, 'yes', ',"thinking":{"type":"disabled"}', '{,"thinking":{"type":"disabled"}}'],
    ['an effort', chat, 'yes', ',"reasoning_effort":"low"', '{,"reasoning_effort":"low"}'],
    ['kwargs that are none', chat, 'yes', ',"chat_template_kwargs":"x","thinking":true', '{,"chat_template_kwargs":"x","thinking":true}'],
    ['completions have no template', '/v1/completions', 'yes', '', '{}'],
    ['messages', '/v1/messages', 'no', '', `{${off}}`],
    ['messages that speak of thinking', '/v1/messages', 'no', ',"thinking":{"type":"enabled"}', '{,"thinking":{"type":"enabled"}}'],
    ['count_tokens', '/v1/messages/count_tokens', 'yes', '', `{${on}}`],
    ['responses', '/v1/responses', 'yes', '', `{${on}}`],
    ['responses that speak of reasoning', '/v1/responses', 'yes', ',"reasoning":{"effort":"low"}', '{,"reasoning":{"effort":"low"}}'],
    ['an upstream gets what the client sent', chat, 'far', ',"enable_thinking":true', '{,"enable_thinking":true}']
  ]
  for (const [what, path, model, rest, expected] of rows) t.equal(await seen(path, model, rest), expected, `${what} (${model}${rest})`)
})
