import { once } from 'node:events'
import OpenAI from 'openai'
import t from 'tap'
import { FakeClock } from '../../../../kernel/testing/index.js'
import { pcmOf, wavHead } from '../../providers/audio/sound.js'
import { fakeSlot } from '../audio/support.js'
import { asked, JSON_TYPE, realtimeGateway, says, silence, sound, SSE_TYPE, type Event, type RealtimeClient } from './support.js'

const user = (text: string, more: object = {}): object => ({
  type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }, ...more
})
const textAlone = { type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], instructions: 'Be brief.' } }

/** The refusal of an event. */
async function refusal ({ send, next }: RealtimeClient, event: object | string): Promise<Record<string, unknown>> {
  send(event)
  return (await next('error')).error as Record<string, unknown>
}

t.test('text goes in and out without sound, with instructions, usage and the reason of the end', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('agent')
  const usage = { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 5 } }
  gateway.runtime.engine('agent').answer({ headers: SSE_TYPE, chunks: [
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { role: 'assistant', reasoning_content: 'hm' } }] })}\n\n`,
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'Four' } }] })}\n\n`,
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'length' }], usage })}\n\n`,
    'data: [DONE]\n\n'
  ] })
  const client = await gateway.open()
  const { send, next } = client
  send(textAlone)
  t.match(await next('session.updated'), { session: { type: 'realtime', model: 'agent', output_modalities: ['text'], instructions: 'Be brief.' } })
  send(user('Two and two?', { event_id: 'e1' }))
  t.match(await next('conversation.item.done'), { previous_item_id: null, item: { object: 'realtime.item', role: 'user' } })
  send({ type: 'response.create', response: { max_output_tokens: 1, metadata: { topic: 'sums' } } })
  t.match(await next('response.content_part.added'), { part: { type: 'text', text: /^$/ } })
  t.match(await next('response.output_text.delta'), { delta: 'Four', output_index: 0, content_index: 0 })
  t.match(await next('response.output_text.done'), { text: 'Four' })
  t.match(await next('response.done'), { response: {
    status: 'incomplete', status_details: { type: 'incomplete', reason: 'max_output_tokens' }, metadata: { topic: 'sums' }, max_output_tokens: 1,
    output: [{ content: [{ type: 'output_text', text: 'Four' }] }],
    usage: { total_tokens: 13, input_tokens: 9, output_tokens: 4, input_token_details: { cached_tokens: 5 } }
  } })
  t.match(asked(gateway, 'agent')[0], {
    max_tokens: 1, messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Two and two?' }], stream_options: { include_usage: true }
  })
  t.throws(() => gateway.runtime.engine('tts'), 'nothing speaks')
})

t.test('a function is called, answered by the client, and the answer goes on from it', async t => {
  const gateway = await realtimeGateway(t)
  await gateway.slots.load('agent')
  const engine = gateway.runtime.engine('agent')
  const piece = (delta: object, reason: string | null = null): string => `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
  engine.answer({ headers: SSE_TYPE, chunks: [
    piece({ role: 'assistant', tool_calls: [{ index: 0, id: 'call_1', function: { name: 'time_in', arguments: '{"city":' } }] }),
    piece({ tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] }), piece({}, 'tool_calls'), 'data: [DONE]\n\n'
  ] })
  const { send, next } = await gateway.open()
  const tool = { type: 'function', name: 'time_in', description: 'The time', parameters: { type: 'object', properties: { city: { type: 'string' } } } }
  send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'], tools: [tool], tool_choice: 'required' } })
  send(user('Time in Oslo?'))
  send({ type: 'response.create' })
  t.match(await next('response.function_call_arguments.delta'), { call_id: 'call_1', delta: '{"city":' })
  t.match(await next('response.function_call_arguments.done'), { call_id: 'call_1', name: 'time_in', arguments: '{"city":"Oslo"}' })
  t.match(await next('response.done'), { response: { status: 'completed', output: [{ type: 'function_call', name: 'time_in', arguments: '{"city":"Oslo"}', call_id: 'call_1' }] } })
  t.match(asked(gateway, 'agent')[0], { tools: [{ type: 'function', function: { name: 'time_in', parameters: { type: 'object' } } }], tool_choice: 'required' })
  engine.answer(says('Noon.'))
  send({ type: 'conversation.item.create', item: { type: 'function_call_output', call_id: 'call_1', output: '12:00' } })
  send({ type: 'response.create', response: { tool_choice: 'none', instructions: 'Say it.' } })
  t.match(await next('response.done'), { response: { output: [{ content: [{ text: 'Noon.' }] }] } })
  t.match(asked(gateway, 'agent')[1], { tool_choice: 'none', messages: [
    { role: 'system', content: 'Say it.' },
    { role: 'user', content: 'Time in Oslo?' },
    { role: 'assistant', tool_calls: [{ id: 'call_1', function: { name: 'time_in', arguments: '{"city":"Oslo"}' } }] },
    { role: 'tool', tool_call_id: 'call_1', content: '12:00' }
  ] })
})

t.test('items are put where the client says, deleted, and read by responses beside the conversation', async t => {
  const gateway = await realtimeGateway(t)
  const client = await gateway.open()
  const { send, next } = client
  send(textAlone)
  send(user('second', { item: { id: 'b', type: 'message', role: 'user', content: [{ type: 'input_text', text: 'second' }] } }))
  send({ type: 'conversation.item.create', previous_item_id: 'root', item: { id: 'a', type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Rhyme.' }] } })
  send({ type: 'conversation.item.create', previous_item_id: 'b', item: { id: 'c', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'third' }] } })
  send(user('fourth', { item: { id: 'd', type: 'message', role: 'user', content: [{ type: 'input_text', text: 'x' }, { type: 'input_image', image_url: 'data:image/png;base64,AA==' }] } }))
  const befores: unknown[] = []
  for (let i = 0; i < 4; i++) befores.push((await next('conversation.item.added')).previous_item_id)
  t.strictSame(befores, [null, null, 'b', 'c'])
  t.match(await refusal(client, user('again', { item: { id: 'c', type: 'message', role: 'user', content: [] } })), { code: 'realtime.item_exists' })
  t.match(await refusal(client, user('x', { previous_item_id: 'nowhere' })), { code: 'realtime.item_not_found', param: 'previous_item_id' })
  send({ type: 'conversation.item.delete', item_id: 'c' })
  t.match(await next('conversation.item.deleted'), { item_id: 'c' })
  t.match(await refusal(client, { type: 'conversation.item.delete', item_id: 'c' }), { code: 'item_delete_invalid_item_id' })
  send({ type: 'response.create' })
  await next('response.done')
  t.match(asked(gateway, 'agent')[0], { messages: [
    { role: 'system', content: 'Be brief.\n\nRhyme.' }, { role: 'user', content: 'second' },
    { role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } }] }
  ] })
  send({ type: 'response.create', response: {
    conversation: 'none', input: [{ type: 'item_reference', id: 'b' }, { type: 'message', role: 'user', content: [{ type: 'input_audio', audio: (sound(0.2) as { audio: string }).audio }] }]
  } })
  t.match(await next('response.done'), { response: { conversation_id: null, status: 'completed' } })
  t.match(asked(gateway, 'agent')[1], { messages: [{ role: 'system' }, { role: 'user', content: 'second' }, { role: 'user', content: 'What time is it?' }] })
})

t.test('what is refused is told with a code and the way out, and the session goes on', async t => {
  const gateway = await realtimeGateway(t)
  const client = await gateway.open()
  const cases: ReadonlyArray<readonly [event: object | string, code: string, param: string | null, message: RegExp]> = [
    ['{', 'request.invalid_json', null, /JSON/],
    ['[]', 'request.not_an_object', null, /object/],
    ['['.repeat(2_000), 'request.too_complex', null, /deep/],
    [{ type: 'output_audio_buffer.clear' }, 'realtime.unsupported', 'type', /"output_audio_buffer.clear"/],
    [{}, 'realtime.unsupported', 'type', /not a client event/],
    [{ type: 'session.update' }, 'validation.invalid', 'session', /object/],
    [{ type: 'session.update', session: { flavour: 'sweet' } }, 'realtime.unsupported', 'session.flavour', /not a known setting/],
    [{ type: 'session.update', session: { prompt: { id: 'p' } } }, 'realtime.unsupported', 'session.prompt', /not supported here/],
    [{ type: 'session.update', session: { tools: [{ type: 'mcp', server_label: 'x' }] } }, 'validation.invalid', 'session.tools.0.type', /function/],
    [{ type: 'session.update', session: { audio: { input: { turn_detection: { type: 'server_vad', threshold: 2 } } } } }, 'validation.invalid', 'session.audio.input.turn_detection', /./],
    [{ type: 'session.update', session: { audio: { output: { format: { type: 'audio/pcm', rate: 48_000 } } } } }, 'validation.invalid', 'session.audio.output.format.rate', /24000/],
    [{ type: 'session.update', session: { model: 'nobody' } }, 'realtime.no_slot', 'model', /svc alias set nobody agent/],
    [{ type: 'input_audio_buffer.append', audio: '%%' }, 'validation.invalid', 'audio', /Base64/],
    [{ type: 'input_audio_buffer.append', audio: 'AAAA' }, 'validation.invalid', 'audio', /whole 16-bit samples/],
    [{ type: 'input_audio_buffer.append' }, 'validation.invalid', 'audio', /string/],
    [{ type: 'input_audio_buffer.commit' }, 'input_audio_buffer_commit_empty', null, /100/],
    [{ type: 'conversation.item.create', item: { type: 'mcp_call' } }, 'realtime.unsupported', 'item.type', /'mcp_call'/],
    [{ type: 'conversation.item.create', item: { type: 'message', role: 'user', content: [{ type: 'output_text', text: 'x' }] } }, 'realtime.unsupported', 'item.content.0.type', /user/],
    [{ type: 'conversation.item.create', item: { id: 'no good', type: 'message', role: 'user', content: [] } }, 'validation.invalid', 'item.id', /letters/],
    [{ type: 'conversation.item.truncate', item_id: 'x', content_index: 0, audio_end_ms: 1 }, 'item_truncate_invalid_item_id', 'item_id', /'x'/],
    [{ type: 'response.cancel' }, 'response_cancel_not_active', 'response_id', /no active/],
    [{ type: 'response.create', response: { conversation: 'other' } }, 'validation.invalid', 'response.conversation', /auto or none/]
  ]
  for (const [i, [event, code, param, message]] of cases.entries()) {
    const sent = typeof event === 'string' ? event : { ...event, event_id: `e${i}` }
    t.match(await refusal(client, sent), { code, param, message, event_id: typeof event === 'string' ? null : `e${i}` }, `${code} ${param}`)
  }
  client.socket.send(Buffer.from('{}'))
  t.match(await client.next('error'), { error: { code: 'realtime.unsupported', message: /text messages/ } })
  client.send(textAlone)
  await client.next('session.updated')
  t.equal(gateway.runtime.started.length, 0, 'nothing was started for them')
  t.strictSame(gateway.logs.filter(({ level }) => level === 'error'), [])
})

t.test('an engine that fails or refuses ends its response, one that is cancelled stops, and there is one at a time', async t => {
  const gateway = await realtimeGateway(t)
  for (const slot of ['agent', 'stt', 'tts']) await gateway.slots.load(slot)
  const engine = gateway.runtime.engine('agent')
  const client = await gateway.open()
  const { send, next } = client
  engine.answer({ status: 400, headers: JSON_TYPE, chunks: ['{"error":{"message":"the context is too small"}}'] })
  send({ type: 'response.create' })
  t.match(await next('error'), { error: { code: 'realtime.engine_refused', message: /status 400: the context is too small/ } })
  t.match(await next('response.done'), { response: { status: 'failed', status_details: { type: 'failed', error: { code: 'realtime.engine_refused' } }, output: { length: 0 } } })
  engine.answer({ ...says('One. ', 'Two.'), dieAfter: 2 })
  send({ type: 'response.create' })
  t.match(await next('response.done'), { response: { status: 'failed', output: [{ status: 'incomplete' }] } })
  gateway.runtime.engine('tts').answer({ headers: { 'content-type': 'audio/mpeg' }, chunks: [Buffer.from('ID3...')] })
  engine.answer(says('One.'))
  send({ type: 'response.create' })
  t.match(await next('error'), { error: { code: 'realtime.not_sound', message: /audio\/mpeg/ } })
  t.match(await next('response.done'), { response: { status: 'failed' } })
  engine.answer({ ...says('One. ', 'Two.'), hangAfter: 2 })
  send({ type: 'response.create', response: { output_modalities: ['text'] } })
  const { response: { id } } = await next('response.created') as unknown as { response: { id: string } }
  await next('response.output_text.delta')
  t.match(await refusal(client, { type: 'response.create' }), { code: 'conversation_already_has_active_response', message: new RegExp(id) })
  send({ type: 'response.cancel', response_id: id })
  t.match(await next('response.done'), { response: { status: 'cancelled', status_details: { reason: 'client_cancelled' } } })
  t.equal(await engine.requests.at(-1)!.closed, 'aborted')
  gateway.runtime.engine('stt').answer({ status: 500, headers: JSON_TYPE, chunks: ['{"error":"no ears"}'] })
  send({ type: 'session.update', session: { type: 'realtime', audio: { input: { transcription: {} } } } })
  send(sound(0.3))
  send({ type: 'input_audio_buffer.commit' })
  send({ type: 'response.create' })
  t.match(await next('conversation.item.input_audio_transcription.failed'), { error: { message: /no ears/ } })
  t.match(await next('response.done'), { response: { status: 'failed' } }, 'it cannot answer what it did not hear')
})

t.test('where a kind of slot is missing, the client learns which, and the command that makes one', async t => {
  const gateway = await realtimeGateway(t, { agent: fakeSlot('llm') })
  const client = await gateway.open()
  t.match(await refusal(client, { type: 'response.create' }), { code: 'realtime.no_slot', message: /no slot of type tts.*`svc slot create tts --type tts`/ })
  client.send(sound(0.3))
  client.send(silence(0.6))
  t.match(await client.next('error'), { error: { code: 'realtime.no_slot', message: /no slot of type transcription.*`svc slot create stt --type transcription`/ } })
  client.send(textAlone)
  client.send({ type: 'response.create' })
  t.match(await client.next('response.done'), { response: { status: 'completed' } }, 'text needs neither')

  const lost = await gateway.open('?model=gpt-realtime')
  t.match(await lost.next('error'), { error: { code: 'realtime.no_slot', message: /svc alias set gpt-realtime agent/ } })
  const refused = await gateway.fetch('/v1/realtime')
  t.equal(refused.status, 426)
})

t.test('a session that transcribes alone needs no model and answers nothing', async t => {
  const gateway = await realtimeGateway(t, { stt: fakeSlot('transcription') })
  const client = await gateway.open('?intent=transcription')
  t.match(await client.next('session.created'), { session: { type: 'transcription', audio: { input: { turn_detection: { type: 'server_vad' } } } } })
  client.send({ type: 'session.update', session: { type: 'transcription', audio: { input: { turn_detection: { type: 'semantic_vad', eagerness: 'high' } } } } })
  t.match(await client.next('session.updated'), { session: { audio: { input: { turn_detection: { type: 'semantic_vad', eagerness: 'high', create_response: true } } } } })
  client.send(sound(0.5))
  client.send(silence(0.45))
  t.match(await client.next('conversation.item.input_audio_transcription.delta'), { delta: 'What time is it?', content_index: 0 })
  t.match(await client.next('conversation.item.input_audio_transcription.completed'), { transcript: 'What time is it?' })
  t.match(await refusal(client, { type: 'response.create' }), { code: 'realtime.unsupported' })
})

t.test('clients of the beta have its session, its items and its names of events', async t => {
  const gateway = await realtimeGateway(t)
  const { send, next, types, events } = await gateway.open('?model=agent', { 'OpenAI-Beta': 'realtime=v1' })
  t.match(await next('session.created'), { session: { object: 'realtime.session', modalities: ['audio', 'text'], input_audio_format: 'pcm16', turn_detection: { type: 'server_vad' } } })
  send({ type: 'session.update', session: {
    modalities: ['text', 'audio'], voice: 'alloy', input_audio_format: 'g711_ulaw', output_audio_format: 'pcm16', input_audio_transcription: { model: 'whisper-1' },
    turn_detection: null, temperature: 0.8, max_response_output_tokens: 100
  } })
  const { session } = await next('session.updated') as unknown as { session: Event }
  t.match(session, {
    voice: 'alloy', input_audio_format: 'g711_ulaw', input_audio_transcription: { model: 'whisper-1' }, turn_detection: null, temperature: 0.8, max_response_output_tokens: 100
  })
  t.notOk('audio' in session || 'type' in session)
  send(user('Hello'))
  send({ type: 'response.create', response: { modalities: ['text', 'audio'] } })
  t.match(await next('response.done'), { response: {
    modalities: ['audio', 'text'], voice: 'alloy', output_audio_format: 'pcm16', output: [{ content: [{ type: 'audio', transcript: 'Hello there' }] }]
  } })
  t.strictSame(types().slice(3), [
    'conversation.item.created', 'response.created', 'response.output_item.added', 'conversation.item.created', 'response.content_part.added',
    'response.audio_transcript.delta', 'response.audio.delta', 'response.audio.done', 'response.audio_transcript.done', 'response.content_part.done',
    'response.output_item.done', 'response.done'
  ])
  t.match(asked(gateway, 'agent')[0], { temperature: 0.8, max_tokens: 100 })
  t.notMatch(JSON.stringify(events), /output_(text|audio"|modalities)/)
})

t.test('a browser opens the session that its key stands for, and no other', async t => {
  const clock = new FakeClock()
  const gateway = await realtimeGateway(t, undefined, clock)
  const make = async (body: object): Promise<{ status: number, answer: { value: string } }> => {
    const response = await gateway.fetch('/v1/realtime/client_secrets', { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })
    return { status: response.status, answer: await response.json() as { value: string } }
  }
  const session = { type: 'realtime', model: 'agent', instructions: 'Rhyme.', output_modalities: ['text'] }
  const { answer } = await make({ session, expires_after: { anchor: 'created_at', seconds: 60 } })
  t.match(answer, { value: /^ek_/, expires_at: Math.floor(clock.now() / 1000) + 60, session: { ...session, id: /^sess_/, object: 'realtime.session' } })
  const browser = await gateway.open('?model=agent', { 'sec-websocket-protocol': `realtime, openai-insecure-api-key.${answer.value}` })
  t.match(await browser.next('session.created'), { session })
  t.equal(browser.socket.protocol, 'realtime')
  const program = await gateway.open('', { authorization: `Bearer ${answer.value}` })
  t.match(await program.next('session.created'), { session })
  await clock.advance(60_000)
  await t.rejects(gateway.open('?model=agent', { authorization: `Bearer ${answer.value}` }), /401/)
  await gateway.open('?model=agent', { authorization: 'Bearer sk-any' })
  t.match(await make({ session: { type: 'realtime', model: 'nobody' } }), { status: 404, answer: { error: { code: 'realtime.no_slot', message: /nobody/ } } })
  t.match(await make({ session: { type: 'realtime', colour: 'red' } }), { status: 400, answer: { error: { code: 'realtime.unsupported', param: 'session.colour' } } })
  t.match(await make({ session: { type: 'realtime', model: ' ' } }), { status: 400, answer: { error: { code: 'request.missing_model' } } })
  t.match(await make({}), { status: 200, answer: { session: { model: /^$/ } } })
})

t.test('WebRTC, SIP and sessions of the beta are refused for good, with the way in', async t => {
  const gateway = await realtimeGateway(t)
  const client = new OpenAI({ baseURL: `${gateway.baseUrl}/v1`, apiKey: 'none' })
  const failure = async (work: PromiseLike<unknown>): Promise<unknown> => {
    try {
      return await work
    } catch (error) {
      return error
    }
  }
  const way = /WebSocket at \/v1\/realtime\?model=/
  const offer = { body: 'v=0', headers: { 'content-type': 'application/sdp' } }
  for (const call of [
    () => client.post('/realtime/calls', offer), () => client.post('/realtime/calls', { body: { sdp: 'v=0', session: {} } }),
    () => client.realtime.calls.hangup('rtc_1'), () => client.realtime.calls.accept('rtc_1', { type: 'realtime' }),
    () => client.realtime.calls.refer('rtc_1', { target_uri: 'tel:1' }), () => client.realtime.calls.reject('rtc_1')
  ]) t.match(await failure(call()), { status: 501, code: 'realtime.no_calls', message: way })
  const { sessions, transcriptionSessions } = client.beta.realtime
  for (const session of [() => sessions.create({}), () => transcriptionSessions.create({})]) {
    t.match(await failure(session()), { status: 501, code: 'realtime.no_beta_sessions', message: /client_secrets.*WebSocket at/ })
  }
  t.match(await failure(client.post('/realtime/calls/rtc_1/sing')), { status: 400 })
})

t.test('a session ends after an hour, and there are sixteen at a time', async t => {
  const clock = new FakeClock()
  const gateway = await realtimeGateway(t, { agent: fakeSlot('llm') }, clock)
  const clients = await Promise.all(Array.from({ length: 16 }, () => gateway.open()))
  await t.rejects(gateway.open(), /503/)
  // signs of life: a client that is silent for a minute is dropped
  for (let minutes = 0; minutes < 60; minutes += 0.5) {
    const pinged = clients.map(({ socket }) => new Promise(resolve => { socket.once('ping', resolve) }))
    await clock.advance(30_000)
    if (minutes < 59.5) await Promise.all(pinged)
    for (const { send } of clients) send({ type: 'response.cancel' })
    await Promise.all(clients.map(({ next }) => next('error')))
  }
  t.match(clients[0]!.events.at(-1), { type: 'error', error: { code: 'session_expired' } })
  t.strictSame(await Promise.all(clients.map(({ closed }) => closed)), clients.map(() => 1000))
})

t.test('a client that does not read its farewell is not waited for', async t => {
  const clock = new FakeClock()
  const gateway = await realtimeGateway(t, { agent: fakeSlot('llm'), tts: fakeSlot('tts') }, clock)
  const { send, socket, next } = await gateway.open()
  for (let seconds = 0; seconds < 3_570; seconds += 30) {
    const pinged = once(socket, 'ping')
    await clock.advance(30_000)
    await pinged
    send({ type: 'response.cancel' })
    await next('error')
  }
  // by now: engines that are idle for so long are unloaded
  for (const slot of ['agent', 'tts']) await gateway.slots.load(slot)
  gateway.runtime.engine('agent').answer(says('A long story.'))
  let end = (): void => {}
  const over = new Promise<void>(resolve => { end = resolve })
  const second = pcmOf(1)
  gateway.runtime.engine('tts').take((request, response) => {
    request.resume()
    response.once('close', end).writeHead(200, { 'content-type': 'audio/wav' }).write(wavHead(0, 24_000, false))
    const write = (): void => {
      while (!response.destroyed && response.write(second));
    }
    response.on('drain', write)
    write()
  })
  send({ type: 'response.create' })
  await next('response.output_audio.delta')
  socket.pause()
  await clock.advance(30_000)
  await clock.advance(10_000)
  await over
  t.pass('its engine is let go')
})
