import { defineRoute, type AnyRoute, type Otherwise } from 'svc-gateway/plugin'
import { chatForm, generateForm } from './answer.js'
import { chatRequest, generateRequest } from './chat-request.js'
import { LINES, ollamaDialect } from '../dialect.js'
import {
  chatAnswerSchema, chatBodySchema, embedAnswerSchema, embedBodySchema, generateAnswerSchema, generateBodySchema,
  oldEmbedAnswerSchema, oldEmbedBodySchema
} from '../schemas.js'
import { talk, type TalkServices } from './talk.js'
import { embed, oldEmbed } from '../vectors.js'

const STREAMED = 'A stream of JSON lines, unless `stream` is false.'
const shared = { method: 'POST', tag: 'Ollama', inference: true, bodyKind: 'buffer', dialect: ollamaDialect } as const
const lines = [{ type: LINES }]

/** What asks a model. */
export function talkRoutes (services: TalkServices, otherwise: Otherwise): AnyRoute[] {
  return [
    defineRoute({
      ...shared,
      url: '/api/chat',
      summary: 'A chat through the Ollama API, streaming or not',
      description: STREAMED,
      schema: { body: chatBodySchema, response: chatAnswerSchema },
      answers: lines,
      example: { model: 'agent', messages: [{ role: 'user', content: 'Say hello' }], stream: false },
      handler: call => talk(services, otherwise, call, { request: chatRequest, form: chatForm })
    }),
    defineRoute({
      ...shared,
      url: '/api/generate',
      summary: 'An answer to one prompt through the Ollama API, streaming or not',
      description: STREAMED,
      schema: { body: generateBodySchema, response: generateAnswerSchema },
      answers: lines,
      example: { model: 'agent', prompt: 'Say hello', stream: false },
      handler: call => talk(services, otherwise, call, { request: generateRequest, form: generateForm })
    }),
    defineRoute({
      ...shared,
      url: '/api/embed',
      summary: 'Vectors of one or several texts, through the Ollama API',
      schema: { body: embedBodySchema, response: embedAnswerSchema },
      example: { model: 'embed', input: ['one', 'two'] },
      handler: call => embed(services, call)
    }),
    defineRoute({
      ...shared,
      url: '/api/embeddings',
      summary: 'The vector of one text: the older form of /api/embed',
      schema: { body: oldEmbedBodySchema, response: oldEmbedAnswerSchema },
      example: { model: 'embed', prompt: 'one' },
      handler: call => oldEmbed(services, call)
    })
  ]
}
