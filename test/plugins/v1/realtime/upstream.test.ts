import t, { type Test } from 'tap'
import { FakeClock } from '../../../../kernel/testing/fake-clock.js'
import type { EngineScript } from '../../../../kernel/testing/index.js'
import { fakeUpstream, refusal, upstreamTable, type FakeUpstream } from '../../../wire/fake-upstream.js'
import { allSlots, bytesIn, hears, JSON_TYPE, realtimeGateway, says, silence, sound, spokenAs, type RealtimeGateway } from './support.js'

/**
 * A gateway, without slots unless some are given, and an upstream that answers each path as it is told. No list of models
 * was asked for yet.
 */
async function upstreamGateway (
  t: Test, chat: EngineScript, slots: Readonly<Record<string, string>> = {}, clock?: FakeClock
): Promise<{ readonly gateway: RealtimeGateway, readonly upstream: FakeUpstream }> {
  const upstream = await fakeUpstream(t)
  upstream.engine.answer(({ url }) => {
    if (url === '/v1/models') return { headers: JSON_TYPE, chunks: ['{"data":[{"id":"gpt-9"},{"id":"whisper-1"},{"id":"tts-1"}]}'] }
    return url === '/v1/chat/completions' ? chat : url === '/v1/audio/speech' ? spokenAs(0.2) : hears('What time is it?')
  })
  return { gateway: await realtimeGateway(t, slots, clock, upstreamTable('far', upstream.url)), upstream }
}

t.test('what is said is heard, answered and spoken by models of an upstream where there is no slot', async t => {
  const { gateway, upstream } = await upstreamGateway(t, says('Noon.'))
  const { send, next, events } = await gateway.open('?model=gpt-9')
  for (const piece of [silence(0.3), sound(0.5), silence(0.8)]) send(piece)
  t.match(await next('conversation.item.done'), { item: { role: 'user' } })
  t.match(await next('response.done'), {
    response: { status: 'completed', output: [{ role: 'assistant', content: [{ type: 'output_audio', transcript: 'Noon.' }] }] }
  })
  t.equal(bytesIn(events), 0.2 * 24_000 * 2)
  const [heard, chat, spoken] = upstream.calls
  t.match([heard, chat, spoken].map(call => call!.url), ['/v1/audio/transcriptions', '/v1/chat/completions', '/v1/audio/speech'])
  t.match(heard!.body.toString('latin1'), /name="model"\r\n\r\nwhisper-1\r\n/)
  t.match(JSON.parse(chat!.body.toString()), { model: 'gpt-9', stream: true, messages: [{ role: 'user', content: 'What time is it?' }] })
  t.match(JSON.parse(spoken!.body.toString()), { model: 'tts-1', input: 'Noon.', response_format: 'wav' })
})

t.test('an upstream that refuses to answer fails the response and not the session', async t => {
  const { gateway, upstream } = await upstreamGateway(t, refusal(400, {}, 'this model is not for chat'))
  const { send, next } = await gateway.open('?model=gpt-9')
  send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  await next('session.updated')
  for (let times = 0; times < 2; times++) {
    send({ type: 'response.create' })
    t.match(await next('response.done'), { response: {
      status: 'failed', status_details: { error: { code: 'realtime.engine_refused', message: /status 400: this model is not for chat/ } }
    } })
  }
  t.equal(upstream.calls.length, 2, 'each is asked once')
})

t.test('a session that began with slots alone goes on with models of an upstream whose list nothing has asked for', async t => {
  const text = { type: 'realtime', output_modalities: ['text'] }
  const others = { type: 'realtime', audio: { input: { transcription: { model: 'far/whisper-1' } }, output: { model: 'far/tts-1' } } }
  for (const [name, event, answer] of [
    ['a session that changes what answers', { type: 'session.update', session: { ...text, model: 'gpt-9' } }, 'session.updated'],
    ['a session that changes what hears and speaks', { type: 'session.update', session: others }, 'session.updated'],
    ['a session of transcription', { type: 'transcription_session.update', session: { input_audio_transcription: { model: 'far/whisper-1' } } }, 'session.updated'],
    ['a response of its own', { type: 'response.create', response: { model: 'gpt-9', output_modalities: ['text'] } }, 'response.done']
  ] as const) {
    const { gateway, upstream } = await upstreamGateway(t, says('Noon.'), allSlots)
    const { send, next, events } = await gateway.open()
    await next('session.created')
    t.equal(upstream.listings, 0, 'nothing was asked yet')
    send(event)
    await next(answer)
    t.strictSame([upstream.listings, events.filter(({ type }) => type === 'error')], [1, []], name)
    if (event.session === others || event.type === 'transcription_session.update') continue
    if (event.type === 'session.update') send({ type: 'response.create' })
    t.match(JSON.parse((await upstream.call(0)).body.toString()), { model: 'gpt-9' }, name)
  }
})

t.test('a model that no list has is refused in the session, which goes on in the order of its events', async t => {
  const { gateway, upstream } = await upstreamGateway(t, says('Noon.'), allSlots)
  const { send, next, events } = await gateway.open()
  send({ type: 'session.update', session: { type: 'realtime', model: 'gpt-8' } })
  send({ type: 'session.update', session: { type: 'realtime', model: 'gpt-9' } })
  t.match(await next('error'), { error: { code: 'realtime.no_slot', param: 'model', message: /gpt-8/ } })
  t.match(await next('session.updated'), { session: { model: 'gpt-9' } })
  t.strictSame(events.map(({ type }) => type).filter(type => /^(?:error|session\.updated)$/.test(type)), ['error', 'session.updated'])
  t.equal(upstream.listings, 1)
})

t.test('a key is given for a session with a model of an upstream, and for none that it does not have', async t => {
  const { gateway } = await upstreamGateway(t, says('Noon.'))
  const make = async (model: string): Promise<[number, unknown]> => {
    const answer = await gateway.fetch('/v1/realtime/client_secrets', { method: 'POST', body: JSON.stringify({ session: { type: 'realtime', model } }) })
    return [answer.status, await answer.json()]
  }
  t.match(await make('gpt-9'), [200, { session: { model: 'gpt-9' } }])
  t.match(await make('gpt-8'), [404, { error: { code: 'realtime.no_slot' } }])
})

t.test('an upstream whose list could not be had is asked again, after a pause, and the same session goes on with its models', async t => {
  const clock = new FakeClock()
  const { gateway, upstream } = await upstreamGateway(t, says('Noon.'), allSlots, clock)
  let isDown = true
  upstream.engine.answer(({ url }) => url === '/v1/models' && !isDown
    ? { headers: JSON_TYPE, chunks: ['{"data":[{"id":"gpt-9"}]}'] }
    : url === '/v1/chat/completions' ? says('Noon.') : refusal(503))
  const { send, next } = await gateway.open()
  await next('session.created')
  const change = (): void => send({ type: 'session.update', session: { type: 'realtime', model: 'gpt-9', output_modalities: ['text'] } })
  change()
  t.match(await next('error'), { error: { code: 'realtime.no_slot' } })
  isDown = false
  change()
  t.match(await next('error'), { error: { code: 'realtime.no_slot' } })
  t.equal(upstream.listings, 1, 'not at once')
  await clock.advance(15_001)
  change()
  await next('session.updated')
  t.equal(upstream.listings, 2)
  send({ type: 'response.create' })
  t.match(await next('response.done'), { response: { status: 'completed' } })
})
