import t from 'tap'
import { chatStream } from '../../../../kernel/testing/index.js'
import { until } from '../../../wire/wire-gateway.js'
import { asked, bytesIn, hears, realtimeGateway, says, silence, sound, spokenAs, SSE_TYPE } from './support.js'

t.test('what is said is heard, answered and spoken, from slots that are cold', async t => {
  const gateway = await realtimeGateway(t)
  const { send, next, types, events } = await gateway.open()
  send(sound(0.6))
  send(silence(0.3))
  send(silence(0.5))
  const done = await next('response.done')
  t.strictSame(types(), [
    'session.created', 'conversation.created', 'input_audio_buffer.speech_started', 'input_audio_buffer.speech_stopped',
    'input_audio_buffer.committed', 'conversation.item.added', 'conversation.item.done', 'response.created', 'response.output_item.added',
    'conversation.item.added', 'response.content_part.added', 'response.output_audio_transcript.delta', 'response.output_audio.delta',
    'response.output_audio.done', 'response.output_audio_transcript.done', 'response.content_part.done', 'response.output_item.done',
    'conversation.item.done', 'response.done'
  ])
  t.match(done, { response: {
    object: 'realtime.response', status: 'completed', output_modalities: ['audio'],
    output: [{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_audio', transcript: 'Hello there' }] }],
    usage: { total_tokens: 0 }
  } })
  t.equal(bytesIn(events), 0.2 * 24_000 * 2)
  const [chat] = asked(gateway, 'agent')
  t.match(chat, { model: String, stream: true, messages: [{ role: 'user', content: 'What time is it?' }] })
  t.match(asked(gateway, 'tts'), [{ input: 'Hello there', response_format: 'wav' }])
  const [heard] = gateway.runtime.engine('stt').requests
  t.match(heard!.body.toString('latin1'), /name="file"; filename="speech\.wav"\r\nContent-Type: audio\/wav\r\n\r\nRIFF/)
  t.equal(heard!.body.readUInt32LE(heard!.body.indexOf('WAVEfmt ') + 16), 16_000, 'what engines that hear want')
  const ids = events.map(({ event_id: id }) => id)
  t.equal(new Set(ids).size, ids.length)
})

t.test('each sentence is spoken as soon as it is there, and what the engine gives at 22,050 Hz comes at 24,000', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('agent')
  await gateway.slots.load('tts')
  let goOn = (): void => {}
  const rest = new Promise<void>(resolve => { goOn = resolve })
  const [head, first, ...others] = chatStream(['The first sentence is here. ', 'The second one ', 'comes later.'])
  gateway.runtime.engine('agent').take((request, response) => {
    request.resume()
    response.writeHead(200, SSE_TYPE).write(`${head}${first}`)
    void rest.then(() => { response.end(others.join('')) })
  })
  gateway.runtime.engine('tts').answer(spokenAs(0.5, 22_050))
  const { send, next, events } = await gateway.open()
  send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Talk to me' }] } })
  send({ type: 'response.create' })
  await next('response.output_audio.delta')
  t.match(asked(gateway, 'tts'), [{ input: 'The first sentence is here.' }], 'while the model still writes')
  goOn()
  await next('response.done')
  t.strictSame(asked(gateway, 'tts').map(({ input }) => input), ['The first sentence is here.', 'The second one comes later.'])
  t.equal(bytesIn(events), 2 * 0.5 * 48_000)
})

t.test('a user who speaks ends the answer: the work of its engines, and what was not spoken of it', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('agent')
  await gateway.slots.load('tts')
  gateway.runtime.engine('agent').answer({ headers: SSE_TYPE, chunks: chatStream(['A first sentence. ', 'And a second one. ', 'And a third. ', 'x']), hangAfter: 4 })
  gateway.runtime.engine('tts').answer(({ body }) => body.includes('first') ? spokenAs(0.5) : { ...spokenAs(0.5), hangAfter: 2 })
  const { send, next, types } = await gateway.open()
  send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Talk' }] } })
  send({ type: 'response.create', event_id: 'mine' })
  await until(() => gateway.runtime.engine('tts').requests.length === 2, 'the second sentence is asked for')
  send(sound(0.3))
  await next('input_audio_buffer.speech_started')
  t.match(await next('response.done'), { response: {
    status: 'cancelled', status_details: { type: 'cancelled', reason: 'turn_detected' },
    output: [{ status: 'incomplete', content: [{ transcript: 'A first sentence. And a second one. ' }] }]
  } })
  t.equal(await gateway.runtime.engine('agent').requests[0]!.closed, 'aborted')
  t.equal(await gateway.runtime.engine('tts').requests[1]!.closed, 'aborted')
  gateway.runtime.engine('agent').answer(says('Yes?'))
  gateway.runtime.engine('tts').answer(spokenAs(0.1))
  send(silence(0.6))
  t.match(await next('response.done'), { response: { status: 'completed' } })
  t.match(asked(gateway, 'agent').at(-1), { messages: [
    { role: 'user', content: 'Talk' }, { role: 'assistant', content: 'A first sentence. And a second one. ' }, { role: 'user', content: 'What time is it?' }
  ] })
  t.equal(types().filter(type => type === 'error').length, 0)
})

t.test('what was not heard of an answer goes from the conversation when the client says where it stopped', async t => {
  const gateway = await realtimeGateway(t)
  const { send, next } = await gateway.open()
  await gateway.slots.load('agent')
  await gateway.slots.load('tts')
  gateway.runtime.engine('agent').answer(says('One two three four. ', 'Five six seven eight.'))
  gateway.runtime.engine('tts').answer(spokenAs(1))
  send({ type: 'response.create' })
  const { response } = await next('response.done') as unknown as { response: { output: Array<{ id: string }> } }
  const [{ id }] = response.output as [{ id: string }]
  send({ type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: 5_000 })
  t.match(await next('error'), { error: { code: 'validation.invalid', param: 'audio_end_ms', message: /ends at 2000/ } })
  send({ type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: 1_500 })
  t.match(await next('conversation.item.truncated'), { item_id: id, content_index: 0, audio_end_ms: 1_500 })
  send({ type: 'conversation.item.retrieve', item_id: id })
  t.match(await next('conversation.item.retrieved'), { item: { content: [{ transcript: 'One two three four. Five six ' }] } })
})

t.test('a client that leaves ends the work of every engine', async t => {
  const gateway = await realtimeGateway(t)
  for (const slot of ['agent', 'stt', 'tts']) await gateway.slots.load(slot)
  gateway.runtime.engine('agent').answer({ headers: SSE_TYPE, chunks: chatStream(['A first sentence. ', 'x']), hangAfter: 2 })
  gateway.runtime.engine('tts').answer({ ...spokenAs(1), hangAfter: 1 })
  gateway.runtime.engine('stt').answer({ headAfterMs: Infinity })
  const { send, socket } = await gateway.open()
  send({ type: 'response.create' })
  await gateway.runtime.engine('tts').request(0)
  send(sound(0.2))
  send({ type: 'input_audio_buffer.commit' })
  await gateway.runtime.engine('stt').request(0)
  socket.terminate()
  for (const slot of ['agent', 'stt', 'tts']) t.equal(await gateway.runtime.engine(slot).requests[0]!.closed, 'aborted', slot)
  t.strictSame(gateway.logs.filter(({ level }) => level === 'error' || level === 'warn'), [], 'leaving is no failure')
})

t.test('noise is written down and not answered', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('stt')
  gateway.runtime.engine('stt').answer(hears(' [BLANK_AUDIO]'))
  const { send, next, types } = await gateway.open()
  send({ type: 'session.update', session: { type: 'realtime', audio: { input: { transcription: { model: 'whisper-1', language: 'en' } } } } })
  t.match(await next('session.updated'), { session: { audio: { input: { transcription: { model: 'whisper-1', language: 'en' } } } } })
  send(sound(0.3))
  send(silence(0.6))
  t.match(await next('conversation.item.input_audio_transcription.completed'), { transcript: '[BLANK_AUDIO]', usage: { type: 'duration', seconds: Number } })
  send({ type: 'input_audio_buffer.clear' })
  await next('input_audio_buffer.cleared')
  t.notOk(types().includes('response.created'))
  t.match(gateway.runtime.engine('stt').requests[0]!.body.toString('latin1'), /name="language"\r\n\r\nen\r\n/)
})

t.test('turns may be the client\'s to tell, and sound of telephones goes both ways', async t => {
  const gateway = await realtimeGateway(t)
  const { send, next, events } = await gateway.open()
  send({ type: 'session.update', session: {
    type: 'realtime', audio: { input: { turn_detection: null, format: { type: 'audio/pcmu' } }, output: { format: { type: 'audio/pcma' }, voice: 'marin', speed: 1.5 } }
  } })
  await next('session.updated')
  const append = { type: 'input_audio_buffer.append', audio: Buffer.alloc(8_000, 0x55).toString('base64') }
  send({ type: 'input_audio_buffer.commit', event_id: 'too-early' })
  t.match(await next('error'), { error: { code: 'input_audio_buffer_commit_empty', event_id: 'too-early', type: 'invalid_request_error' } })
  send(append)
  send({ type: 'input_audio_buffer.commit' })
  const { item_id: id } = await next('input_audio_buffer.committed')
  send({ type: 'response.create' })
  t.match(await next('response.done'), { response: { status: 'completed', audio: { output: { format: { type: 'audio/pcma' }, voice: 'marin' } } } })
  t.equal(bytesIn(events), 0.2 * 8_000, 'a byte for each sample')
  t.match(asked(gateway, 'tts'), [{ voice: 'marin', speed: 1.5 }])
  send({ type: 'conversation.item.retrieve', item_id: id })
  const { item } = await next('conversation.item.retrieved') as unknown as { item: { content: Array<{ audio: string, transcript: string }> } }
  t.equal(item.content[0]!.transcript, 'What time is it?')
  t.equal(Buffer.from(item.content[0]!.audio, 'base64').length, 8_000)
})
