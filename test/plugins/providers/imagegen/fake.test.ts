import t from 'tap'
import { shippedWorkflow } from '../../../../plugins/providers/imagegen/workflow.js'
import { nodeTable } from './fake/nodes.js'
import { decodePng, encodePng } from './fake/png.js'
import { startFakeComfy } from './fake/server.js'
import { validatePrompt, type PromptGraph } from './fake/validate.js'
import { CHECKPOINTS } from './image-gateway.js'

// the fake is worth what it refuses: what ComfyUI's execution.py and server.py refuse, in its words

const good = (): Record<string, { class_type?: string, inputs: Record<string, unknown> }> =>
  structuredClone(shippedWorkflow('sd15_simple').graph) as ReturnType<typeof good>

t.test('the fake refuses a damaged graph as the engine does', async t => {
  type Damage = (graph: ReturnType<typeof good>) => void
  type Case = readonly [what: string, damage: Damage, node: string | null, type: string, details: RegExp]
  const cases: readonly Case[] = [
    ['an unknown node', graph => { graph.sampler!.class_type = 'FancySampler' }, null, 'invalid_prompt', /Node ID '#sampler'/],
    ['a node without a type', graph => { delete graph.sampler!.class_type }, null, 'invalid_prompt', /Node ID '#sampler'/],
    ['nothing that is saved', graph => { delete graph.save }, null, 'prompt_no_outputs', /^$/],
    ['a missing input', graph => { delete graph.sampler!.inputs.seed }, 'sampler', 'required_input_missing', /^seed$/],
    ['a link of the wrong kind', graph => { graph.sampler!.inputs.positive = ['checkpoint', 0] }, 'sampler', 'return_type_mismatch',
      /positive, received_type\(MODEL\) mismatch input_type\(CONDITIONING\)/],
    ['a link that is none', graph => { graph.sampler!.inputs.model = ['checkpoint'] }, 'sampler', 'bad_linked_input', /^model$/],
    ['a value below its least', graph => { graph.sampler!.inputs.steps = 0 }, 'sampler', 'value_smaller_than_min', /^steps$/],
    ['a value above its most', graph => { graph.sampler!.inputs.cfg = 101 }, 'sampler', 'value_bigger_than_max', /^cfg$/],
    ['text for a number', graph => { graph.latent!.inputs.width = 'wide' }, 'latent', 'invalid_input_type', /^width, wide, invalid literal for int\(\) with base 10: 'wide'$/],
    ['half a pixel as text', graph => { graph.latent!.inputs.width = '64.5' }, 'latent', 'invalid_input_type', /^width, 64\.5, invalid literal/],
    ['a choice that is not there', graph => { graph.sampler!.inputs.scheduler = 'fast' }, 'sampler', 'value_not_in_list', /scheduler: 'fast' not in \['simple'/],
    ['one of many choices', graph => { graph.sampler!.inputs.sampler_name = 'fast' }, 'sampler', 'value_not_in_list', /list of length 21/],
    ['a checkpoint that is not there', graph => { graph.checkpoint!.inputs.ckpt_name = 'other.safetensors' }, 'checkpoint', 'value_not_in_list', /ckpt_name: 'other.safetensors'/],
    ['a link to nowhere', graph => { graph.save!.inputs.images = ['gone', 0] }, 'save', 'exception_during_validation', /'gone'/],
    ['a link to nowhere further up', graph => { graph.sampler!.inputs.model = ['gone', 0] }, 'sampler', 'exception_during_inner_validation', /'gone'/],
    ['an output that a node does not have', graph => { graph.decode!.inputs.samples = ['sampler', 3] }, 'decode', 'exception_during_inner_validation', /tuple index/]
  ]
  for (const [what, damage, node, type, details] of cases) {
    const graph = good()
    damage(graph)
    const { valid, error, nodeErrors } = validatePrompt(graph as PromptGraph, nodeTable(CHECKPOINTS))
    t.equal(valid, false, what)
    if (node === null) {
      t.match(error, { type, details }, what)
      t.strictSame(nodeErrors, {})
    } else {
      t.match(error, { type: 'prompt_outputs_failed_validation', message: 'Prompt outputs failed validation' })
      t.match(nodeErrors, { [node]: { class_type: good()[node]!.class_type, dependent_outputs: ['save'], errors: [{ type, details }] } }, what)
      t.strictSame(Object.keys(nodeErrors), [node], `${what}: only the node at fault`)
    }
  }
  const high = good()
  high.sampler!.inputs.cfg = 101
  t.match(validatePrompt(high as PromptGraph, nodeTable(CHECKPOINTS)).nodeErrors.sampler?.errors, [{ message: 'Value 101.0 bigger than max of 100.0' }])
  const two = { ...good(), more: { class_type: 'PreviewImage', inputs: {} } }
  t.match(validatePrompt(two as PromptGraph, nodeTable(CHECKPOINTS)), { valid: true, outputs: ['save'], nodeErrors: { more: {} } }, 'one good output runs')
  const text = good()
  text.latent!.inputs.width = '256'
  t.ok(validatePrompt(text as PromptGraph, nodeTable(CHECKPOINTS)).valid, 'numbers may come as text')
  t.equal(text.latent!.inputs.width, 256)
})

t.test('the fake\'s pictures can be read back', async t => {
  const picture = { width: 5, height: 3, rgb: Buffer.from(Array.from({ length: 45 }, (_, i) => i)) }
  const png = encodePng(picture)
  t.strictSame(decodePng(png), picture)
  const damaged = Buffer.from(png)
  damaged[40]! ^= 1
  t.throws(() => decodePng(damaged), /checksum|incorrect/)
  t.throws(() => decodePng(Buffer.from('GIF89a')), /signature/)
})

t.test('the fake guards its origins and files as the engine does', async t => {
  const home = t.testdir({ 'models': { checkpoints: { 'a.safetensors': '' } }, 'secret.png': 'x' })
  const server = await startFakeComfy({ host: '127.0.0.1', port: 0, baseDirectory: home, argv: [] })
  t.teardown(() => server.close())
  const base = `http://127.0.0.1:${server.port}`
  const status = async (path: string, init?: RequestInit): Promise<number> => (await fetch(`${base}${path}`, init)).status
  const table: ReadonlyArray<readonly [string, number]> = [
    ['/view?filename=none.png', 404], ['/view', 404], ['/view?filename=../secret.png', 400], ['/view?filename=/etc/passwd', 400],
    ['/view?filename=secret.png&subfolder=..', 403], ['/view?filename=a&type=other', 400], ['/nothing', 404], ['/api/queue', 200], ['/free', 404]
  ]
  for (const [path, expected] of table) t.equal(await status(path), expected, path)
  t.equal(await status('/queue', { headers: { origin: 'http://evil.example' } }), 403, 'a page of another origin')
  t.equal(await status('/prompt', { method: 'POST', body: '{}' }), 400)
  t.strictSame([await status('/queue', { method: 'POST' }), await status('/interrupt', { method: 'POST' })], [500, 200], 'only an interrupt may be empty')
  t.equal(await status('/nothing', { method: 'POST', body: '{}' }), 405, 'files of its page can only be read')
  t.match(await (await fetch(`${base}/object_info/CheckpointLoaderSimple`)).json(), { CheckpointLoaderSimple: { input: { required: { ckpt_name: [['a.safetensors'], {}] } } } })
  t.strictSame(await (await fetch(`${base}/history/unknown`)).json(), {})
})

t.test('what was computed is not computed again', async t => {
  const home = t.testdir({ models: { checkpoints: Object.fromEntries(CHECKPOINTS.map(name => [name, ''])) } })
  const server = await startFakeComfy({ host: '127.0.0.1', port: 0, baseDirectory: home, argv: [] })
  t.teardown(() => server.close())
  const run = async (prefix: string): Promise<{ cached: string[], file: string }> => {
    const prompt = good()
    Object.assign(prompt.latent!.inputs, { width: 16, height: 16 })
    prompt.save!.inputs.filename_prefix = prefix
    const submitted = await fetch(`http://127.0.0.1:${server.port}/prompt`, { method: 'POST', body: JSON.stringify({ prompt }) })
    const { prompt_id: id } = await submitted.json() as { prompt_id: string }
    while (!server.queue.history.has(id)) await new Promise(resolve => { setImmediate(resolve) })
    const { outputs, status } = server.queue.history.get(id)!
    const { nodes } = status.messages.find(([type]) => type === 'execution_cached')![1] as { nodes: string[] }
    return { cached: nodes.sort(), file: outputs.save!.images[0]!.filename }
  }
  const all = Object.keys(good()).sort()
  const rest = all.filter(node => node !== 'save')
  t.strictSame(await run('a'), { cached: [], file: 'a_00001_.png' })
  t.strictSame(await run('a'), { cached: all, file: 'a_00001_.png' }, 'the same graph answers with the old file')
  t.strictSame(await run('b'), { cached: rest, file: 'b_00001_.png' }, 'also of what the second run had no need of')
  t.strictSame(await run('a'), { cached: rest, file: 'a_00002_.png' }, 'one graph is remembered')
})
