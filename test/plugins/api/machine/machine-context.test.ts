import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { discreteAmd } from '../../../kernel/hardware/machines/discrete-amd.js'
import { ggufFile, number } from '../../../kernel/models/gguf-file.js'
import { apiOn } from './machine.js'
import type { Api, Answer } from '../support.js'

const [SHORT, LONG, CAP] = [4096, 131_072, 32_768]

interface Home extends Api {
  readonly folder: string
  /** Tokens that the engine of a slot was started with. */
  launched (slot: string): number
  written (slot: string): Promise<string>
}

/** Two registered models and two that are only files, with 4096 and 131,072 tokens, and an embedder of each size. */
async function home (t: Test): Promise<Home> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-models-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  mkdirSync(folder, { recursive: true })
  const row = (id: string, length: number, capability: string): string => {
    const path = join(folder, `${id}.gguf`)
    writeFileSync(path, ggufFile({ keys: { 'llama.context_length': number(length) } }))
    return `[models."${id}"]\npath = "${path}"\ncapabilities = ["${capability}"]\n[models."${id}".metadata]\ncontext_length = ${length}\n`
  }
  for (const [name, length] of [['loose-short', SHORT], ['loose-long', LONG]] as const) {
    writeFileSync(join(folder, `${name}.gguf`), ggufFile({ keys: { 'llama.context_length': number(length) } }))
  }
  const registry = row('short', SHORT, 'chat') + row('long', LONG, 'chat') + row('near', SHORT, 'embed') + row('far', LONG, 'embed')
  const gateway = await apiOn(t, discreteAmd, { files: { 'var/lib/svc/registry/registry.toml': registry } })
  return Object.assign(gateway, {
    folder,
    launched: (slot: string) => {
      const { form } = gateway.runtime.started.findLast(started => started.slot === slot)!.spec
      const argv = form.kind === 'container' ? form.command : form.args
      return Number(argv[argv.indexOf('--ctx-size') + 1])
    },
    written: (slot: string) => gateway.file(`etc/svc/slots/${slot}.toml`)
  })
}

const ok = (t: Test, { status, text }: Answer): void => { t.ok(status < 300, text) }

t.test('a context size that nobody wrote follows the model: create, edit, swap, load', async t => {
  const gateway = await home(t)
  const { call, launched, written } = gateway
  for (const [first, second, sizes] of [['short', 'long', [SHORT, CAP]], ['long', 'short', [CAP, SHORT]]] as const) {
    const name = `from-${first}`
    const act = async (method: string, verb: string, body: object, size: number): Promise<void> => {
      ok(t, await call(method, `/api/slots/${name}${verb}`, body))
      if (method === 'PUT') ok(t, await call('POST', `/api/slots/${name}/restart`))
      t.equal(launched(name), size, `${name} ${verb} ${JSON.stringify(body)}`)
      t.match((await call('GET', `/api/slots/${name}`)).json, { ctx_max: size })
    }
    ok(t, await call('POST', '/api/slots', { name, type: 'llm', device: 'gpu-vulkan', model: { default: first } }))
    t.notMatch(await written(name), /context_size/, 'nothing is guessed into the file')
    await act('POST', '/load', {}, sizes[0])
    await act('POST', '/swap', { model_id: second }, sizes[1])
    await act('POST', '/swap', { model_id: first }, sizes[0])
    await act('PUT', '/config', { model: { default: second } }, sizes[1])
    await act('POST', '/load', { model_id: first }, sizes[0])
    ok(t, await call('PUT', `/api/slots/${name}/config`, { enabled: false }))
  }
})

t.test('one that was read from a file goes with that file', async t => {
  const gateway = await home(t)
  const { call, launched, written, folder } = gateway
  const [short, long] = ['loose-short', 'loose-long'].map(name => join(folder, `${name}.gguf`))
  ok(t, await call('POST', '/api/slots', { name: 'chat', type: 'llm', device: 'cpu', model: { default: short } }))
  t.match(await written('chat'), new RegExp(`context_size = ${SHORT}[^]*context_for = "${short}"`))
  ok(t, await call('POST', '/api/slots/chat/load'))
  t.equal(launched('chat'), SHORT)
  ok(t, await call('POST', '/api/slots/chat/swap', { model_id: long }))
  t.equal(launched('chat'), CAP, 'a swap reads the other file')
  ok(t, await call('POST', '/api/slots/chat/load', { model_id: long }))
  t.match(await written('chat'), new RegExp(`context_size = ${CAP}[^]*context_for = "${long}"`))
  t.match((await call('GET', '/api/slots/chat')).json, { ctx_max: CAP, config_drift: false }, 'what was swapped is what is written')
  ok(t, await call('PUT', '/api/slots/chat/config', { model: { default: 'short' } }))
  t.notMatch(await written('chat'), /context_(size|for)/)
  ok(t, await call('POST', '/api/slots/chat/restart'))
  t.equal(launched('chat'), SHORT)
})

t.test('what a user wrote is kept, also over a size that was derived', async t => {
  const gateway = await home(t)
  const { call, launched, written, folder } = gateway
  ok(t, await call('POST', '/api/slots', { name: 'chat', type: 'llm', device: 'cpu', model: { default: 'short', context_size: 2048 } }))
  ok(t, await call('PUT', '/api/slots/chat/config', { model: { default: 'long' } }))
  ok(t, await call('POST', '/api/slots/chat/load'))
  t.equal(launched('chat'), 2048)
  ok(t, await call('PATCH', '/api/slots/chat/defaults', { default: join(folder, 'loose-long.gguf') }))
  t.match(await written('chat'), /context_size = 2048/)
  t.notMatch(await written('chat'), /context_for/)

  ok(t, await call('POST', '/api/slots', { name: 'other', type: 'llm', device: 'cpu', model: { default: join(folder, 'loose-short.gguf') } }))
  ok(t, await call('PATCH', '/api/slots/other/defaults', { context_size: 1024 }))
  ok(t, await call('PUT', '/api/slots/other/config', { model: { default: 'long' } }))
  t.match(await written('other'), /context_size = 1024/, 'it is the user\'s now')
  ok(t, await call('PATCH', '/api/slots/other/defaults', { context_size: null }))
  t.match((await call('GET', '/api/slots/other')).json, { ctx_max: CAP })

  // as `svc slot create` sends its default
  ok(t, await call('POST', '/api/slots', { name: 'cli', type: 'llm', device: 'cpu', model: { default: 'short', context_size: SHORT }, meta: { context_for: 'short' } }))
  ok(t, await call('POST', '/api/slots/cli/swap', { model_id: 'long' }))
  t.equal(launched('cli'), CAP, 'a default is nobody\'s wish for another model')
})

t.test('capabilities and stacks derive it as well', async t => {
  const gateway = await home(t)
  const { call, launched } = gateway
  const embed = (model: string): Promise<Answer> => call('POST', '/api/capabilities/embed/embed', { enabled: true, device: 'gpu-vulkan', model })
  for (const [model, size] of [['near', SHORT], ['far', CAP], ['near', SHORT]] as const) {
    ok(t, await embed(model))
    t.equal(launched('embed'), size, model)
  }
  const stack = (model: string): object => ({ name: model, description: '', slots: [{ slot: 'chat', model, device: 'gpu-vulkan' }] })
  for (const [slug, model, size] of [['one', 'short', SHORT], ['two', 'long', CAP], ['one', 'short', SHORT]] as const) {
    const { status } = await call('GET', `/api/stacks/${slug}`)
    if (status === 404) ok(t, await call('POST', '/api/stacks', { slug, stack: stack(model) }))
    ok(t, await call('POST', `/api/stacks/${slug}/apply?force=true`))
    t.equal(launched('chat'), size, `stack of ${model}`)
  }
})
