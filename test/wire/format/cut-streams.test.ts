import fc from 'fast-check'
import t from 'tap'
import gemini from '../../../plugins/dialects/gemini/index.js'
import ollama from '../../../plugins/dialects/ollama/index.js'
import hub from '../../../plugins/services/hub/index.js'
import library from '../../../plugins/services/library/index.js'
import pull from '../../../plugins/services/pull/index.js'
import vectors from '../../../plugins/v1/vectors/index.js'
import { chatOnlyGateway, chunksOf, type Said } from './chat-only.js'

type Json = Readonly<Record<string, unknown>>

const busy: Said = {
  deltas: [
    { reasoning_content: 'hm' }, { content: 'Let me ' }, { content: 'look é🎈.' },
    { tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'weather', arguments: '{"place":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: '"Rome"}' } }] }
  ],
  finish: 'tool_calls'
}
const bytes = Buffer.from(chunksOf(busy).join(''))
const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
const messages = [{ role: 'user', content: 'hi' }]

const lines = (text: string): Json[] => text.split('\n').filter(line => line.trim() !== '').map(line => JSON.parse(line) as Json)
const events = (text: string): Json[] => text.split('\n\n').filter(event => event !== '').map(event => JSON.parse(event.replace(/^data: /, '')) as Json)
const isDone = ({ done }: Json): boolean => done === true
const isFinished = (event: Json): boolean => JSON.stringify(event).includes('"finishReason"')

t.test('a stream of Ollama\'s or Gemini\'s dialect', async t => {
  const { gateway, says } = await chatOnlyGateway(t, [vectors, hub, library, pull, ollama, gemini])
  const forms = {
    'lines of a chat': { path: '/api/chat', body: { model: 'agent', messages }, read: lines, isLast: isDone },
    'lines of a prompt': { path: '/api/generate', body: { model: 'agent', prompt: 'hi' }, read: lines, isLast: isDone },
    'events': { path: '/v1beta/models/agent:streamGenerateContent?alt=sse', body: { contents }, read: events, isLast: isFinished },
    'a list': { path: '/v1beta/models/agent:streamGenerateContent', body: { contents }, read: (text: string) => JSON.parse(text) as Json[], isLast: isFinished }
  }
  for (const [name, { path, body, read, isLast }] of Object.entries(forms)) {
    await t.test(`of ${name} that is cut anywhere on its way is the same; one that ends early ends with an error and is whole JSON`, async t => {
      const ask = async (chunks: readonly Buffer[], dieAfter = Infinity): Promise<readonly Json[]> => {
        says(busy, { chunks, dieAfter })
        const text = await (await gateway.fetch(path, { method: 'POST', body: JSON.stringify(body) })).text()
        const told = text.replaceAll(/"(?:responseId|created_at)":"[^"]*"/g, '"at":""').replaceAll(/_duration":\d+/g, '_duration":0')
        // a refusal before anything was told is one object
        return told.startsWith('{"error"') ? [JSON.parse(told) as Json] : read(told)
      }
      const whole = await ask([bytes])
      t.equal(whole.filter(isLast).length, 1)
      t.ok(isLast(whole.at(-1)!), 'the last says that it is')
      const places = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 })
      await fc.assert(fc.asyncProperty(places, async cuts => {
        const marks = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        t.strictSame(await ask(marks.slice(1).map((mark, i) => bytes.subarray(marks[i]!, mark))), whole)
      }), { numRuns: 15 })
      const end = bytes.indexOf('"finish_reason":"tool_calls"')
      await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: end }), fc.boolean(), async (cut, dies) => {
        const told = await ask([bytes.subarray(0, cut), Buffer.from(' ')], dies ? 1 : Infinity)
        t.ok(told.at(-1)!.error, `cut at ${cut}`)
        t.strictSame(told.slice(0, -1), whole.slice(0, told.length - 1))
      }), { numRuns: 25 })
    })
  }
})
