import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import OpenAI from 'openai'
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { WebSocket } from 'ws'
import { check, media, sentence, url } from './check.mjs'

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'anything' })

/** Events of a session, each waited for in its turn. */
function told (session) {
  const events = []
  let seen = 0
  let wake = () => {}
  session.on('event', event => { events.push(event); wake() })
  session.on('error', () => {})
  return async type => {
    for (;;) {
      while (seen < events.length) {
        const event = events[seen++]
        if (event.type === type) return event
      }
      await new Promise(resolve => { wake = resolve })
    }
  }
}

/** A session of the client for programs. It always speaks TLS, unless it is told what to connect with. */
async function withSession (model, headers, work) {
  const agent = Object.assign(new Agent(), { protocol: 'https:' })
  const session = new OpenAIRealtimeWS({ model, options: { agent, headers } }, client)
  const next = told(session)
  try {
    assert.equal((await next('session.created')).session.model, model)
    await work(session, next)
  } finally {
    session.close()
    agent.destroy()
  }
}

const say = text => ({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] } })

await check('realtime, in writing', () => withSession('agent', {}, async (session, next) => {
  session.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], instructions: 'Be brief.' } })
  await next('session.updated')
  session.send(say('Who are you?'))
  session.send({ type: 'response.create' })
  assert.equal((await next('response.output_text.done')).text, sentence)
  const { response } = await next('response.done')
  assert.equal(response.status, 'completed')
  assert.ok(response.usage.output_tokens > 10)
}))
await check('realtime, an answer that is cancelled, and another one after it', () => withSession('endless', {}, async (session, next) => {
  session.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  session.send(say('Go on.'))
  session.send({ type: 'response.create' })
  await next('response.output_text.delta')
  session.send({ type: 'response.cancel' })
  assert.equal((await next('response.done')).response.status, 'cancelled')
  session.send({ type: 'response.create', response: { max_output_tokens: 5 } })
  assert.equal((await next('response.done')).response.status_details.reason, 'max_output_tokens')
}))
await check('realtime, an error that the session survives', () => withSession('agent', {}, async (session, next) => {
  session.send({ type: 'session.update', event_id: 'mine', session: { type: 'realtime', output_modalities: ['smell'] } })
  const { error } = await next('error')
  assert.equal(error.event_id, 'mine')
  assert.equal(error.param, 'session.output_modalities.0')
  session.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  await next('session.updated')
}))
await check('realtime, the client for browsers with a client secret', async () => {
  const { value } = await client.realtime.clientSecrets.create({ session: { type: 'realtime', model: 'agent', output_modalities: ['text'] } })
  // a page has a WebSocket of its own, and reaches the gateway through TLS: here without
  globalThis.WebSocket = class extends WebSocket {
    constructor (address, protocols) { super(address.replace('wss:', 'ws:'), protocols) }
  }
  const session = new OpenAIRealtimeWebSocket({ model: 'agent' }, new OpenAI({ baseURL: `${url}/v1`, apiKey: value }))
  const next = told(session)
  assert.deepEqual((await next('session.created')).session.output_modalities, ['text'])
  session.send(say('Who are you?'))
  session.send({ type: 'response.create' })
  assert.equal((await next('response.output_text.done')).text, sentence)
  session.close()
})
if (media) {
  const second = Buffer.alloc(48_000)
  for (let i = 0; i < 24_000; i++) second.writeInt16LE(Math.round(Math.sin(i * 2 * Math.PI * 200 / 24_000) * 8_000), 2 * i)
  await check('realtime, heard, answered and spoken', () => withSession('agent', {}, async (session, next) => {
    let bytes = 0
    session.on('response.output_audio.delta', ({ delta }) => { bytes += Buffer.from(delta, 'base64').length })
    session.send({ type: 'session.update', session: { type: 'realtime', audio: { input: { transcription: { model: 'whisper-1' } }, output: { voice: 'alloy' } } } })
    await next('session.updated')
    session.send({ type: 'input_audio_buffer.append', audio: second.toString('base64') })
    session.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(48_000).toString('base64') })
    await next('input_audio_buffer.speech_started')
    await next('input_audio_buffer.speech_stopped')
    // the test's model hears nothing, and nothing is not answered
    assert.equal((await next('conversation.item.input_audio_transcription.completed')).transcript, '')
    session.send({ type: 'response.create' })
    const { response } = await next('response.done')
    assert.equal(response.status, 'completed')
    assert.equal(response.output[0].content[0].transcript, sentence)
    assert.ok(bytes > 24_000, String(bytes))
  }))
  await check('realtime, in the words of the beta', () => withSession('agent', { 'OpenAI-Beta': 'realtime=v1' }, async (session, next) => {
    session.send({ type: 'session.update', session: { modalities: ['text', 'audio'], turn_detection: null } })
    assert.deepEqual((await next('session.updated')).session.modalities, ['audio', 'text'])
    session.send(say('Who are you?'))
    session.send({ type: 'response.create' })
    await next('response.audio.delta')
    assert.equal((await next('response.audio_transcript.done')).transcript, sentence)
  }))
} else {
  await check('realtime, where nothing speaks', () => withSession('agent', {}, async (session, next) => {
    session.send({ type: 'response.create' })
    const { error } = await next('error')
    assert.equal(error.code, 'realtime.no_slot')
    assert.match(error.message, /svc slot create tts --type tts/)
  }))
}
