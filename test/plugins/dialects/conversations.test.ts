import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { GeminiAnswer } from '../../../plugins/dialects/gemini/answer.js'
import { chatMessages as ofGemini } from '../../../plugins/dialects/gemini/contents.js'
import { chatForm, OllamaAnswer } from '../../../plugins/dialects/ollama/talk/answer.js'
import { chatMessages as ofOllama } from '../../../plugins/dialects/ollama/talk/messages.js'
import { WholeMessage } from '../../../plugins/v1/messages/chat-answer.js'
import { chatMessages as ofMessages } from '../../../plugins/v1/messages/chat-messages.js'
import { conversationOf } from '../../../plugins/v1/over-messages/conversation.js'
import { ResponseWriter } from '../../../plugins/v1/responses/chat-answer.js'
import { ChatMessages } from '../../../plugins/v1/responses/chat-messages.js'
import { chatRequest, NOT_KEPT } from '../../../plugins/v1/responses/chat-request.js'
import { answers, messageOf, streamOf, told, type Answer } from '../v1/answers.js'

type Json = Readonly<Record<string, unknown>>

/** What a user says: a text and pictures behind it, not both empty. */
interface Turn { readonly text: string, readonly images: readonly string[] }
/** An answer with what its calls came to, and what the user says to it. */
interface Round { readonly answer: Answer, readonly results: readonly Turn[], readonly next: Turn }
interface Talk { readonly system: string, readonly first: Turn, readonly rounds: readonly Round[] }

const image = fc.uint8Array({ maxLength: 12 }).map(bytes => Buffer.concat([Buffer.from('iVBORw0KGgoA', 'base64'), bytes]).toString('base64'))
const turn = fc.record({ text: fc.string({ unit: 'grapheme' }), images: fc.array(image, { maxLength: 3 }) })
  .filter(({ text, images }) => text !== '' || images.length > 0)
/** Most tools answer with a text. */
const result = fc.record({ text: fc.string({ unit: 'grapheme' }), images: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(image, { maxLength: 2 })) })
const results = fc.array(result, { minLength: 3, maxLength: 3 })
const rounds = fc.array(fc.record({ answer: answers, results, next: turn }), { maxLength: 4 })
const talks: fc.Arbitrary<Talk> = fc.record({ system: fc.string({ minLength: 1 }), first: turn, rounds })
  // each call of a conversation has an id of its own
  .map(talk => ({ ...talk, rounds: talk.rounds.map((round, i) => ({ ...round, answer: numbered(round.answer, i) })) }))

function numbered (answer: Answer, i: number): Answer {
  return { ...answer, calls: answer.calls.map(call => ({ ...call, id: `${i}_${call.id}` })) }
}

/** How a dialect says what a client says, and what its clients send back of an answer. */
interface Dialect {
  readonly user: (turn: Turn) => Json[]
  readonly assistant: (answer: Answer) => Json[]
  /** Results, and what the user says to them. */
  readonly results: (round: Round) => Json[]
  readonly chat: (system: string, messages: readonly Json[]) => readonly object[]
}

const url = (data: string): string => `data:image/png;base64,${data}`
const request = chatRequest({ model: 'm', input: 'x' }, null, NOT_KEPT)
const clock = { now: () => 0, monotonic: () => 0 }
const whole = <T>(writer: { whole (): object }): T => writer.whole() as T
const resultsOf = ({ answer: { calls }, results }: Round): Array<{ id: string, name: string } & Turn> =>
  calls.map(({ id, name }, i) => ({ id, name, ...results[i]! }))

function parts<P> ({ text, images }: Turn, textPart: (text: string) => P, imagePart: (data: string) => P): P[] {
  return [...text === '' ? [] : [textPart(text)], ...images.map(imagePart)]
}

const responsesParts = (said: Turn): Json[] =>
  parts<Json>(said, text => ({ type: 'input_text', text }), data => ({ type: 'input_image', image_url: url(data) }))
const responsesUser = (said: Turn): Json => ({ role: 'user', content: responsesParts(said) })
const messagesUser = (said: Turn): Json[] => parts<Json>(said, text => ({ type: 'text', text }), data =>
  ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } }))
const geminiUser = (said: Turn): Json[] => parts<Json>(said, text => ({ text }), data => ({ inlineData: { mimeType: 'image/png', data } }))
const ollamaUser = ({ text, images }: Turn): Json => ({ role: 'user', content: text, images })

const dialects: Readonly<Record<string, Dialect>> = {
  responses: {
    user: said => [responsesUser(said)],
    assistant: answer =>
      whole<{ output: Json[] }>(told(new ResponseWriter(request, { model: 'm', createdAt: 1 }), Buffer.from(streamOf(answer)))).output,
    results: round => [
      ...resultsOf(round).map(({ id, ...said }) =>
        ({ type: 'function_call_output', call_id: id, output: said.images.length === 0 ? said.text : responsesParts(said) })),
      responsesUser(round.next)
    ],
    chat: (system, items) => {
      const messages = new ChatMessages(true, [])
      messages.system(system)
      messages.input(items)
      return messages.list
    }
  },
  messages: {
    user: said => [{ role: 'user', content: messagesUser(said) }],
    assistant: answer => {
      const { content } = whole<{ content: unknown }>(told(new WholeMessage('m'), Buffer.from(streamOf(answer))))
      return [{ role: 'assistant', content }]
    },
    results: round => [{ role: 'user', content: [
      ...resultsOf(round).map(({ id, ...said }) =>
        ({ type: 'tool_result', tool_use_id: id, content: said.images.length === 0 ? said.text : messagesUser(said) })),
      ...messagesUser(round.next)
    ] }],
    chat: (system, messages) => ofMessages({ system, messages }, true, [])
  },
  gemini: {
    user: said => [{ role: 'user', parts: geminiUser(said) }],
    assistant: answer => whole<{ candidates: Array<{ content: Json }> }>(
      told(new GeminiAnswer('m', 'whole', true), Buffer.from(streamOf(answer)))
    ).candidates.map(({ content }) => content),
    results: round => [{ role: 'user', parts: [
      ...resultsOf(round).map(({ id, name, text, images }) =>
        ({ functionResponse: { id, name, response: { output: text }, parts: geminiUser({ text: '', images }) } })),
      ...geminiUser(round.next)
    ] }],
    chat: (system, contents) => ofGemini({ systemInstruction: { parts: [{ text: system }] }, contents }, true, [])
  },
  ollama: {
    user: said => [ollamaUser(said)],
    assistant: answer => [whole<{ message: Json }>(
      told(new OllamaAnswer({ model: 'm', form: chatForm, clock, startedAt: 0, isCold: false }, false), Buffer.from(streamOf(answer)))
    ).message],
    results: round => [
      ...resultsOf(round).map(({ id, name, text, images }) => ({ role: 'tool', tool_call_id: id, tool_name: name, content: noted({ text, images }), images })),
      ollamaUser(round.next)
    ],
    chat: (system, messages) => ofOllama([{ role: 'system', content: system }, ...messages], true, [])
  }
}

/** A result in chat, which is a text: its pictures are the user's. */
function noted ({ text, images }: Turn): string {
  return images.length === 0 ? text : `${text}${text === '' ? '' : '\n'}[what else it answered follows]`
}

/** What results show stands before what the user says to them. */
function shown (round: Round): Json[] {
  return resultsOf(round).flatMap(({ images }) => images.map(data => ({ type: 'image_url', image_url: { url: url(data) } })))
}

const chatUser = (said: Turn, before: readonly Json[] = []): object => ({
  role: 'user',
  content: said.images.length + before.length === 0
    ? said.text
    : [...before, ...parts<Json>(said, text => ({ type: 'text', text }), data => ({ type: 'image_url', image_url: { url: url(data) } }))]
})

function chatOf ({ system, first, rounds }: Talk): object[] {
  return [
    { role: 'system', content: system }, chatUser(first),
    ...rounds.flatMap(round => [
      messageOf(round.answer), ...resultsOf(round).map(({ id, ...said }) => ({ role: 'tool', tool_call_id: id, content: noted(said) })),
      chatUser(round.next, shown(round))
    ])
  ]
}

/** No text is said in two ways. */
function plain (messages: readonly object[]): object[] {
  return messages.map(message => {
    const { role, content } = message as Json
    return role === 'assistant' && content === '' ? { ...message, content: null } : message
  })
}

t.test('a conversation with pictures, thoughts, calls and their results is the same in every dialect', async t => {
  for (const [name, { user, assistant, results, chat }] of Object.entries(dialects)) {
    fc.assert(fc.property(talks, talk => {
      const said = [...user(talk.first), ...talk.rounds.flatMap(round => [...assistant(round.answer), ...results(round)])]
      assert.deepEqual(plain(chat(talk.system, said)), plain(chatOf(talk)), name)
    }), { numRuns: 60 })
    t.pass(name)
  }
})

t.test('a conversation of one dialect goes by chat to an upstream of another and back, and nothing is lost but thoughts', async t => {
  for (const [name, { user, assistant, results, chat }] of Object.entries(dialects)) {
    fc.assert(fc.property(talks, talk => {
      const unthought = {
        ...talk,
        rounds: talk.rounds.map(({ answer, ...round }) => {
          const texts = answer.texts.length + answer.calls.length === 0 ? ['-'] : answer.texts
          return { ...round, answer: { ...answer, texts, thoughts: [] } }
        })
      }
      const said = unthought.rounds.flatMap(round => [...assistant(round.answer), ...results(round)])
      const { system, messages } = conversationOf(chat(talk.system, [...user(unthought.first), ...said]), [])
      assert.deepEqual(plain(ofMessages({ system, messages }, false, [])), plain(chatOf(unthought)), name)
    }), { numRuns: 40 })
    t.pass(name)
  }
})

t.test('pictures in the first of several results stand behind all of them, also where the user says nothing', t => {
  const pictured = { text: 'seen', images: ['iVBORw0KGgoA'] }
  const answer = { thoughts: [], texts: ['-'], refusals: [], calls: ['a', 'b'].map(id => ({ id, name: id, args: '{}' })) }
  const round = { answer, results: [pictured, { text: 'two', images: [] }], next: { text: 'and?', images: [] } }
  for (const [name, { user, assistant, results, chat }] of Object.entries(dialects)) {
    const said = results(round)
    const { content, parts: inner } = said.at(-1)! as { content?: Json[] | string, parts?: Json[] }
    // without the user's last words: an item of its own, or the last of a list
    const many = (inner ?? content) as Json[]
    const silent = said.length > 1 ? said.slice(0, -1) : [{ ...said[0], [inner === undefined ? 'content' : 'parts']: many.slice(0, -1) }]
    for (const [last, behind] of [[said, [{ type: 'text', text: 'and?' }]], [silent, []]] as const) {
      const messages = chat('S', [...user({ text: 'hi', images: [] }), ...assistant(answer), ...last])
      t.match(messages.slice(3), [
        { role: 'tool', tool_call_id: 'a', content: noted(pictured) }, { role: 'tool', tool_call_id: 'b', content: 'two' },
        { role: 'user', content: [{ type: 'image_url' }, ...behind] }
      ], name)
      t.equal(messages.length, 6, name)
    }
  }
  t.end()
})
