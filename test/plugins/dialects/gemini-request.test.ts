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
