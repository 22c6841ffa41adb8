import { core, definePlugin, defineRoute } from 'svc-gateway/plugin'
import { audioError } from './errors.js'
import { audioModels } from './models.js'
import {
  audioModelsSchema, transcriptionSchema, transcriptionFormSchema, translationFormSchema, speechBodySchema, voicesQuerySchema,
  voicesSchema
} from './schemas.js'
import { speechDefaults } from './speech.js'
import { unreadableAudio } from './transcription.js'
import { KnownVoices } from './voices.js'

/** Speech, its voices, transcription and translation. */
export default definePlugin({
  name: 'v1-audio',
  kind: 'routes',
  apiVersion: 1,
  errors: audioError,
  requires: { dispatch: core.dispatch, slots: core.slots },
  register (ctx) {
    const { dispatch, slots } = ctx.services
    const voices = new KnownVoices(slots)
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/audio/speech',
      tag: 'Audio',
      surface: 'speech',
      summary: 'Speech from text, as a stream of audio',
      schema: { body: speechBodySchema },
      example: { model: 'tts', input: 'Hello', voice: 'alloy' },
      bodyKind: 'buffer',
      produces: 'application/octet-stream',
      answers: [{ type: 'audio/*' }, { type: 'text/event-stream' }],
      handler: call => dispatch.forward(call, { surface: 'speech', path: '/audio/speech', edit: speechDefaults })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/audio/transcriptions',
      tag: 'Audio',
      summary: 'Text from speech',
      description: 'The form is streamed to the engine; fields beyond `file` and `model` are the engine\'s.',
      schema: { body: transcriptionFormSchema, response: transcriptionSchema },
      answers: [{ type: 'text/*' }, { type: 'application/x-subrip' }, { type: 'text/event-stream' }],
      example: { file: '@speech.wav', model: 'stt' },
      bodyKind: 'stream',
      handler: call => dispatch.upload(call, { surface: 'transcription', path: '/audio/transcriptions', refusal: unreadableAudio })
    }))
    ctx.addRoute(defineRoute({
      method: 'POST',
      url: '/v1/audio/translations',
      tag: 'Audio',
      summary: 'English text from speech in another language',
      description: 'The form is streamed to the engine; fields beyond `file` and `model` are the engine\'s.',
      schema: { body: translationFormSchema, response: transcriptionSchema },
      answers: [{ type: 'text/*' }, { type: 'application/x-subrip' }],
      example: { file: '@speech.wav', model: 'stt' },
      bodyKind: 'stream',
      handler: call => dispatch.upload(call, { surface: 'translation', path: '/audio/translations', refusal: unreadableAudio })
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/v1/audio/models',
      tag: 'Audio',
      summary: 'Speech and transcription slots',
      description: 'Enabled slots, loaded or not, by the names that requests take.',
      schema: { response: audioModelsSchema },
      handler: () => audioModels(slots)
    }))
    ctx.addRoute(defineRoute({
      method: 'GET',
      url: '/v1/audio/voices',
      tag: 'Audio',
      summary: 'Voices of the speech slots',
      description: 'A slot that is not running has the voices that it last reported; none is started.',
      schema: { querystring: voicesQuerySchema, response: voicesSchema },
      handler: ({ query, signal }) => voices.list(query.model, signal)
    }))
  }
})
