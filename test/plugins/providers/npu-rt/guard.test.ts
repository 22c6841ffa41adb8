import t, { type Test } from 'tap'
import activity from '../../../../plugins/api/activity/index.js'
import backends from '../../../../plugins/api/backends/index.js'
import capabilities from '../../../../plugins/api/capabilities/index.js'
import slotRoutes from '../../../../plugins/api/slots/index.js'
import capabilityFile from '../../../../plugins/services/capabilities/index.js'
import hub from '../../../../plugins/services/hub/index.js'
import library from '../../../../plugins/services/library/index.js'
import pull from '../../../../plugins/services/pull/index.js'
import { strixHalo } from '../../../kernel/hardware/machines/strix-halo.js'
import { npuGateway, type NpuGateway, type NpuGatewayOptions } from './npu-gateway.js'

t.setTimeout(300_000)

const plugins = [activity, backends, capabilities, capabilityFile, slotRoutes, hub, library, pull]
const onHalo = (t: Test, options: NpuGatewayOptions = {}): Promise<NpuGateway> =>
  npuGateway(t, { machine: strixHalo, plugins, ...options })

async function chat ({ client }: NpuGateway): Promise<string | null> {
  return (await client.chat.completions.create({ model: 'npu', messages: [{ role: 'user', content: 'good day' }] })).choices[0]!.message.content
}

t.test('a model that is not a chat model is refused by every way in, and the engine goes on untouched', async t => {
  const gateway = await onHalo(t)
  t.equal(await chat(gateway), 'You said: good day')
  const { pid } = await gateway.engine()
  for (const model of ['whisper-v3:turbo', 'embed-gemma:300m']) {
    const refused = { status: 400, json: { error: { code: 'slot.config_error', message: new RegExp(`'${model}' is not a chat model`) } } }
    t.match(await gateway.call('POST', '/api/slots/npu/swap', { model_id: model }), refused, `swap to ${model}`)
    t.match(await gateway.call('POST', '/api/backends/npu/load', { model_id: model }), refused, `load of ${model}`)
    t.match(await gateway.call('POST', '/api/slots/npu/load', { model_id: model }), refused, `slot load of ${model}`)
    t.match(await gateway.call('PUT', '/api/slots/npu/config', { model: { default: model } }), refused, `configuration with ${model}`)
  }
  t.match(await gateway.call('GET', '/api/slots/npu'), { json: { state: 'ready', model_id: 'llama3.2:1b' } })
  t.equal((await gateway.engine()).pid, pid, 'the same process')
  t.equal(await chat(gateway), 'You said: good day')
})

t.test('a model of the NPU is found in any case, by its tag and by its other name', async t => {
  const gateway = await onHalo(t)
  for (const model of ['Llama3.2:1B', 'llama3.2-1b-FLM', 'Llama3.2-1B-FLM', 'LLAMA3.2-1b-flm']) {
    const { choices } = await gateway.client.chat.completions.create({ model, messages: [{ role: 'user', content: 'good day' }] })
    t.equal(choices[0]!.message.content, 'You said: good day', model)
  }
})

t.test('a disabled anchor stays as it is when the model is refused', async t => {
  const gateway = await onHalo(t)
  await gateway.slots.update('npu', { enabled: false })
  t.match(await gateway.call('POST', '/api/backends/npu/load', { model_id: 'embed-gemma:300m' }), { status: 400 })
  t.match(gateway.slots.config('npu'), { enabled: false, model: { default: 'llama3.2:1b' } })
  t.match(await gateway.call('POST', '/api/backends/npu/load', { model_id: 'gemma3:1b' }), { status: 200, json: { model_id: 'gemma3:1b' } })
})

t.test('an engine that is healthy and cannot infer is not ready', async t => {
  const gateway = await onHalo(t)
  gateway.order('broken-npu\n')
  const failed = await gateway.call('POST', '/api/slots/npu/load')
  t.match(failed, { json: { error: { code: 'slot.load_failed', message: /healthy but its warm-up failed: the engine failed: NPU command failed/ } } })
  t.match(await gateway.call('GET', '/api/slots/npu'), { json: { state: 'error' } })
  gateway.order('')
  t.match(await gateway.call('POST', '/api/slots/npu/load'), { status: 200 })
  t.strictSame((await gateway.engine()).seen, ['chat llama3.2:1b'], 'one inference')
})

t.test('the first inference is what the engine is there for', async t => {
  const anchor = (switches: string): string => `type = "llm"\nprovider = "npu-rt"\ndevice = "npu"\n[npu]\nchat = false\n${switches}\n`
  for (const [switches, seen] of [['embed = true', 'embed embed-gemma:300m'], ['asr = true', 'hear whisper-v3:turbo']] as const) {
    const gateway = await onHalo(t, { anchor: anchor(switches) })
    t.match(await gateway.call('POST', '/api/slots/npu/load'), { status: 200 })
    t.strictSame((await gateway.engine()).seen, [seen])
    await gateway.slots.unload('npu')
  }
})

t.test('a first inference that hangs ends with its slot', async t => {
  const gateway = await onHalo(t)
  gateway.order('hold-npu\n')
  const load = gateway.call('POST', '/api/slots/npu/load')
  const quit = new AbortController()
  for await (const { message, state } of gateway.slots.watch('npu', quit.signal)) if (message === 'warming up' || state === 'error') break
  quit.abort()
  t.equal(gateway.slots.status('npu').state, 'warming')
  await gateway.slots.unload('npu', { force: true })
  t.match(await load, { json: { error: { code: 'slot.stopped' } } })
  t.match(gateway.slots.status('npu'), { state: 'offline', engineId: null })
  gateway.order('')
  t.equal(await chat(gateway), 'You said: good day')
})

t.test('a model is found in any case, where one name alone has it', async t => {
  const gateway = await onHalo(t)
  const ask = async (model: string): Promise<string | null> =>
    (await gateway.client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] })).choices[0]!.message.content
  for (const model of ['llama3.2-1b-FLM', 'Llama3.2-1B-FLM', 'LLAMA3.2:1B']) t.equal(await ask(model), 'You said: hi', model)
  t.strictSame([...new Set((await gateway.engine()).seen)], ['chat llama3.2:1b'], 'the engine hears its own spelling')
  t.match(await ask('Llama3.2-3B-FLM').catch((error: unknown) => error), { status: 404 })
})
