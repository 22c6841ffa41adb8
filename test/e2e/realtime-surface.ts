import { Agent } from 'node:http'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { RealtimeClientEvent, RealtimeServerEvent } from 'openai/resources/realtime/realtime'
import type { Test } from 'tap'
import { demoSentence } from '../../plugins/services/demo/sentence.js'
import { pcmOf } from '../plugins/providers/audio/sound.js'
import { openai } from './text-surfaces.js'

type Event<T extends RealtimeServerEvent['type']> = Extract<RealtimeServerEvent, { type: T }>

export interface Talk {
  readonly send: (event: RealtimeClientEvent) => void
  readonly next: <T extends RealtimeServerEvent['type']>(type: T) => Promise<Event<T>>
  readonly events: readonly RealtimeServerEvent[]
}

/** A session of OpenAI's client, which speaks TLS unless it is told what to connect with. */
export async function talkTo (t: Test, url: string, model = 'agent'): Promise<Talk> {
  const agent = Object.assign(new Agent(), { protocol: 'https:' })
  const session = new OpenAIRealtimeWS({ model, options: { agent } }, openai(url))
  t.teardown(() => {
    session.close()
    agent.destroy()
  })
  const events: RealtimeServerEvent[] = []
  let seen = 0
  let wake = (): void => {}
  session.on('event', event => {
    events.push(event)
    wake()
  })
  session.on('error', error => { if (error.error === undefined) t.fail(error.message) })
  await new Promise(resolve => { session.socket.once('open', resolve) })
  return {
    events,
    send: event => session.send(event),
    next: async <T extends RealtimeServerEvent['type']>(type: T) => {
      for (;;) {
        while (seen < events.length) {
          const event = events[seen++]!
          if (event.type === type) return event as Event<T>
          if (event.type === 'error') throw new Error(event.error.message)
        }
        await new Promise<void>(resolve => { wake = resolve })
      }
    }
  }
}

export function soundIn (events: readonly RealtimeServerEvent[]): Buffer {
  return Buffer.concat(events.flatMap(event => event.type === 'response.output_audio.delta' ? [Buffer.from(event.delta, 'base64')] : []))
}

/** Heard, answered and spoken; the test's model hears nothing, so that it has to be asked for an answer. */
export async function talks (t: Test, url: string): Promise<void> {
  const { send, next, events } = await talkTo(t, url)
  t.match(await next('session.created'), { session: { object: 'realtime.session', model: 'agent', audio: { output: { format: { type: 'audio/pcm', rate: 24_000 } } } } })
  send({ type: 'session.update', session: { type: 'realtime', audio: { input: { turn_detection: null, transcription: { model: 'whisper-1' } }, output: { voice: 'alloy' } } } })
  await next('session.updated')
  send({ type: 'input_audio_buffer.append', audio: pcmOf(1).toString('base64') })
  send({ type: 'input_audio_buffer.commit' })
  t.match(await next('conversation.item.input_audio_transcription.completed'), { transcript: /^$/, usage: { type: 'duration', seconds: 1 } })
  send({ type: 'response.create' })
  const { response } = await next('response.done')
  t.match(response, { status: 'completed', output: [{ content: [{ type: 'output_audio', transcript: demoSentence }] }] })
  t.ok(response.usage!.output_tokens! > 10)
  t.ok(soundIn(events).length > 24_000, 'more than half a second of it')
  send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'In writing?' }] } })
  send({ type: 'response.create', response: { output_modalities: ['text'] } })
  t.match(await next('response.output_text.done'), { text: demoSentence })
}

export async function makesClientSecrets (t: Test, url: string): Promise<void> {
  const secret = await openai(url).realtime.clientSecrets.create({ session: { type: 'realtime', model: 'agent', instructions: 'Rhyme.' } })
  t.match(secret, { value: /^ek_/, session: { type: 'realtime', instructions: 'Rhyme.' } })
  t.ok(secret.expires_at > Date.now() / 1000 + 300)
}

/** WebRTC, SIP and the sessions of the beta are no way in, and say so. */
export async function tellsTheWayIn (t: Test, url: string): Promise<void> {
  const client = openai(url)
  const refusals = await Promise.allSettled([
    client.post('/realtime/calls', { body: {} }), client.realtime.calls.hangup('rtc_1'),
    client.beta.realtime.sessions.create({}), client.beta.realtime.transcriptionSessions.create({})
  ])
  for (const refusal of refusals) t.match(refusal, { status: 'rejected', reason: { status: 501, message: /open a WebSocket/ } })
}
