import t from 'tap'
import { chatRequest } from '../../../plugins/dialects/gemini/request.js'

t.test('topK reaches engines of slots and makes no upstream refuse the request, which is told where it is not what gemini-cli always sends', async t => {
  const asked = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { topK: 64, topP: 0.95 } }
  const slot = chatRequest(asked, 'agent', { name: 'agent', enable_thinking: null } as never, true)
  t.match([slot.body, slot.warnings], [{ top_k: 64, top_p: 0.95 }, { length: 0 }])
  const upstream = chatRequest(asked, 'far', null, true)
  t.notOk('top_k' in upstream.body)
  t.match([upstream.body, upstream.warnings], [{ top_p: 0.95 }, { length: 0 }])
  const chosen = chatRequest({ ...asked, generationConfig: { topK: 5 } }, 'far', null, true)
  t.notOk('top_k' in chosen.body)
  t.match(chosen.warnings, [/^generationConfig\.topK: left out/])
})

t.test('a member may be null in one spelling and given in the other; given in both, that of the documents wins', async t => {
  const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
  const body = (config: object): object => chatRequest({ contents, ...config }, 'far', null, true).body
  t.match(body({ generationConfig: null, generation_config: { max_output_tokens: 5 } }), { max_tokens: 5 })
  const inner = { maxOutputTokens: null, max_output_tokens: 6 }
  t.match(body({ generation_config: { top_p: 0.5 }, generationConfig: inner }), { max_tokens: 6 })
  t.match(body({ generationConfig: { max_output_tokens: 7, maxOutputTokens: 8 } }), { max_tokens: 8 })
})
