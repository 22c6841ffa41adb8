import { isDeepStrictEqual } from 'node:util'
import { timesOfJson } from '../../processor-time.js'
import fc from '../../property.js'
import t from 'tap'
import type { NamedSlotConfig } from '../../../kernel/contract/index.js'
import { dotted, invalid, MAX_PROBLEMS, toDiagnostics } from '../../../kernel/config/check/shape-check.js'
import { checkSlotFile, foldSlotFile } from '../../../kernel/config/schema/slot-file.js'
import { patchSlotFile } from '../../../kernel/config/schema/slot-patch.js'
import { isTable, parseToml, type Table } from '../../../kernel/config/toml/toml-file.js'
import { slotWithProvider } from '../../../kernel/config/snapshot.js'
import { shippedProviders } from '../../providers.js'

function load (toml: string, name = 'agent'): NamedSlotConfig {
  const { value, problems } = checkSlotFile(name, parseToml(toml), 'file', foldSlotFile(parseToml(toml), shippedProviders))
  if (value === null) throw new Error(problems.map(problem => `${dotted(problem.path)}: ${problem.message}`).join('\n'))
  return slotWithProvider(value, shippedProviders)
}

function problemsOf (toml: string, name = 'agent'): readonly string[] {
  return toDiagnostics('slots/agent.toml', checkSlotFile(name, parseToml(toml), 'file').problems).map(({ path, message }) => `${path} ${message}`)
}

t.test('both placements give the same slot', async t => {
  const nested = load(`
    [slot]
    name = "agent"
    device = "gpu-rocm"
    port = 8081
    image = "ghcr.io/x/y:1"
    [model]
    default = "qwen"
    context_size = 8192
    n_gpu_layers = 10
    rope_freq_base = 1.5
    [server]
    extra_args = ["-a", "b"]
    env = { A = "1" }`)
  const flat = load(`
    name = "agent"
    device = "gpu-rocm"
    port = 8081
    image = "ghcr.io/x/y:1"
    model = "qwen"
    ctx_size = 8192
    n_gpu_layers = 10
    rope_freq_base = 1.5
    extra_args = ["-a", "b"]
    env = { A = "1" }`)
  t.same(flat, nested)
  t.match(flat, {
    name: 'agent', type: 'llm', provider: 'llm-server', container_image: 'ghcr.io/x/y:1', idle_timeout_s: null,
    model: { default: 'qwen', context_size: 8192 }, server: { extra_args: ['-a', 'b'], env: { A: '1' } }
  })
  t.same(load(''), load('[slot]'), 'an empty file is a slot with all defaults')
})

t.test('what old and short files mean', async t => {
  const table: readonly (readonly [string, string, object])[] = [
    ['ctx_size in [model]', '[model]\nctx_size = 512', { model: { context_size: 512 } }],
    ['legacy [defaults]', '[defaults]\nctx_size = 512', { model: { context_size: 512 } }],
    ['[model] wins over [defaults]', '[defaults]\nctx_size = 512\n[model]\ncontext_size = 1024', { model: { context_size: 1024 } }],
    ['equal values in two places', 'context_size = 512\n[model]\nctx_size = 512', { model: { context_size: 512 } }],
    ['backend without device', 'backend = "rocm"', { device: 'gpu-rocm' }],
    ['backend that is a device', 'backend = "gpu-vulkan"', { device: 'gpu-vulkan' }],
    ['backend loses to device', 'backend = "rocm"\ndevice = "cpu"', { device: 'cpu' }],
    ['backend flm', 'backend = "flm"', { device: 'npu', provider: 'npu-rt' }],
    ['backend auto', 'backend = "auto"', { device: undefined }],
    ['provider llama-server', 'provider = "llama-server"', { provider: 'llm-server' }],
    ['provider comfyui', 'provider = "comfyui"', { provider: 'imagegen' }],
    ['provider qwen3tts', 'provider = "qwen3tts"', { provider: 'tts-gpu' }],
    ['provider of a third party', 'provider = "my-engine"', { provider: 'my-engine' }],
    ['[image] makes an image slot', '[image]\ndefault_steps = 4', { type: 'image', provider: 'imagegen', image: { idle_restore_minutes: 60 } }],
    ['an empty [image] too', '[image]', { type: 'image', image: { default_size: '1024x1024' } }],
    ['image text and image table', '[slot]\nimage = "ref"\n[image]', { container_image: 'ref', image: { default_steps: 0 } }],
    ['container_image beside [image]', 'container_image = "ref"\n[image]', { container_image: 'ref', type: 'image' }],
    ['npu device', 'device = "npu"', { provider: 'npu-rt' }],
    ['tts on the cpu', 'type = "tts"', { provider: 'tts-cpu' }],
    ['tts on a gpu', 'type = "tts"\ndevice = "gpu-rocm"', { provider: 'tts-gpu' }],
    ['transcription', 'type = "transcription"', { provider: 'stt-engine' }],
    ['a profile named after its provider', 'type = "tts"\nprofile = "tts-gpu"', { provider: 'tts-gpu' }],
    ['keys that mean nothing any more', 'lru = true', { type: 'llm' }],
    ['a runtime', 'runtime = "container"', { type: 'llm', runtime: 'container' }],
    ['extra_args as text', 'extra_args = "-a \'b c\'"', { server: { extra_args: '-a \'b c\'' } }],
    ['free options', '[options]\nanything = [1, { x = 2 }]', { options: { anything: [1, { x: 2 }] } }]
  ]
  for (const [name, toml, expect] of table) t.match(load(toml), expect, name)
})

t.test('everything wrong with a file at once, in the words of the file', async t => {
  t.same(problemsOf('device = "banana"'), [
    'device must be one of gpu-rocm, gpu-vulkan, gpu-cuda, cpu, npu; got "banana"'
  ])
  t.same(problemsOf('device = "gpu-rcm"\nport = "x"\nworkers = 0\nport_ = 1\n'), [
    'device must be one of gpu-rocm, gpu-vulkan, gpu-cuda, cpu, npu; got "gpu-rcm"; did you mean gpu-rocm?',
    'port must be a whole number, got text',
    'workers must be at least 1',
    'port_ is not a known key; did you mean port?'
  ])
  const table: readonly (readonly [string, string | RegExp])[] = [
    ['[slot]\ndevice = "banana"', /^slot\.device must be one of/],
    ['ctx_size = 5', 'ctx_size must be at least 128'],
    ['[defaults]\nctx_size = 5', 'defaults.ctx_size must be at least 128'],
    ['[model]\nctx_size = "big"', 'model.ctx_size must be a whole number, got text'],
    ['port = 1.5', 'port must be a whole number, got a number'],
    ['port = 9000', 'port must be at most 8200'],
    ['devcie = "cpu"', 'devcie is not a known key; did you mean device?'],
    ['[slot]\ncontxt_size = 1', 'slot.contxt_size is not a known key; did you mean context_size?'],
    ['default_steps = 4', 'default_steps is not a key of this table; it belongs in [image]'],
    ['[server]\nextra_arg = []', 'server.extra_arg is not a known key; did you mean extra_args?'],
    ['[nonsense]\na = 1', /^nonsense is not a known key; known here: /],
    ['extra_args = 5', 'extra_args must be a string or a list of strings, got a whole number'],
    ['env = { "A B" = "x" }', 'env."A B" has a key that must match [A-Za-z_][A-Za-z0-9_]*'],
    ['[server.env]\nTOKEN = 5', 'server.env.TOKEN must be text, got a whole number'],
    ['model = 3\ncontext_size = 512', 'model must be a table, got a whole number'],
    ['slot = 3', /^slot is not a known key/],
    ['context_size = 512\n[model]\nctx_size = 1024', 'model.ctx_size contradicts context_size; keep one of the two'],
    ['device = "cpu"\n[slot]\ndevice = "npu"', 'slot.device contradicts device; keep one of the two'],
    ['backend = "vulcan"', /^backend must be one of rocm, .*did you mean vulkan\?; better, write `device`$/],
    ['name = "other"', 'name must be agent, the name of the file without .toml; rename one of the two'],
    ['runtime = "Systemd!"', 'runtime must be container, process, docker, podman or the name of a runtime that a plugin brings'],
    ['vision = "yes"', 'vision must be true or false, got text'],
    ['default_response_format = "mp4"', /^default_response_format must be one of mp3, .*got "mp4"; did you mean mp3\?$/],
    ['profile = "Bad Name"', /^profile must be lowercase letters/],
    ['chat_template = ""', 'chat_template must not be empty'],
    ['default_speed = 9', 'default_speed must be at most 4'],
    ['[defaults]\nodd = 1', /^defaults is not a known key/],
    ['"__proto__" = 1', /^__proto__ is not a known key/]
  ]
  for (const [toml, expect] of table) t.match(problemsOf(toml), [expect], toml)
})

t.test('values are shown only where they are harmless', async t => {
  const secret = 'hunter2'
  for (const toml of [
    `[server.env]\nA = "${secret}\\n"`, `[server]\nenv = "${secret}"`, `env = ["${secret}"]`, `port = "${secret}"`, `system_prompt = ["${secret}"]`,
    `extra_args = [1, "${secret}"]`, `device = "${secret} with \\u001b[31m escapes"`
  ]) t.notMatch(problemsOf(toml).join(), secret, toml)
  const client = checkSlotFile('agent', { device: secret }, 'client').problems
  t.notMatch(JSON.stringify(client), secret, 'never for clients')
  t.match(client[0]?.message, /must be one of gpu-rocm/)
})

t.test('a patch leaves everything where it is', async t => {
  const table: readonly (readonly [string, string, Table, string])[] = [
    ['flat stays flat', 'context_size = 512', { model: { context_size: 1024 } }, 'context_size = 1024'],
    ['nested stays nested', '[model]\nctx_size = 512', { context_size: 1024 }, '[model]\nctx_size = 1024'],
    ['[slot] stays', '[slot]\nport = 8081', { port: 8090, vision: false }, '[slot]\nport = 8090\nvision = false'],
    ['new keys go to their tables', 'port = 8081', { context_size: 512, extra_args: ['-a'], vision: false },
      'port = 8081\nvision = false\n[model]\ncontext_size = 512\n[server]\nextra_args = ["-a"]'],
    ['tables merge one level', '[server]\nextra_args = ["-a"]\nenv = { A = "1", B = "2" }', { server: { env: { C: '3' } } },
      '[server]\nextra_args = ["-a"]\nenv = { C = "3" }'],
    ['null deletes', 'port = 8081\nvision = false', { vision: null }, 'port = 8081'],
    ['null deletes every spelling', 'port = 8081\n[model]\ncontext_size = 512\n[defaults]\nctx_size = 128', { context_size: null }, 'port = 8081'],
    ['null deletes a table', 'port = 8081\ncontext_size = 512\n[model]\ndefault = "x"', { model: null }, 'port = 8081'],
    ['null of what is not there', 'port = 8081', { profile: null, server: null, image: null }, 'port = 8081'],
    ['null inside of a value', '', { server: { env: { A: '1', B: null } } }, '[server]\nenv = { A = "1" }'],
    ['backend gives way to device', 'backend = "rocm"', { device: 'cpu' }, 'device = "cpu"'],
    ['backend that says the same stays', 'backend = "rocm"', { device: 'gpu-rocm' }, 'backend = "rocm"'],
    ['an old provider name stays', 'provider = "llama-server"', { provider: 'llm-server', port: 8081 }, 'provider = "llama-server"\nport = 8081'],
    ['an old provider name is written in the new one', '', { provider: 'flm' }, 'provider = "npu-rt"'],
    ['legacy defaults give way', '[defaults]\nctx_size = 512', { context_size: 1024 }, '[model]\ncontext_size = 1024'],
    ['a flat model becomes a table', 'model = "x"', { model: { labels: ['vision'] } }, '[model]\ndefault = "x"\nlabels = ["vision"]'],
    ['a flat model stays flat', 'model = "x"', { model: { default: 'y' } }, 'model = "y"'],
    ['a container image makes room for [image]', 'image = "ref"', { image: { default_steps: 3 } },
      'container_image = "ref"\n[image]\ndefault_steps = 3'],
    ['image text is the container image', '', { image: 'ref' }, 'container_image = "ref"'],
    ['image null deletes the text', 'image = "ref"\nport = 8081', { image: null }, 'port = 8081'],
    ['an empty table merges nothing', '[model]\ndefault = "x"', { model: {}, image: {} }, '[model]\ndefault = "x"\n[image]'],
    ['equal values change nothing', '[server]\nextra_args = []', { server: { extra_args: [] }, extra_args: [] }, '[server]\nextra_args = []'],
    ['dotted keys', 'model.default = "x"\nmodel.context_size = 512', { model: { default: 'y' } }, 'model.default = "y"\nmodel.context_size = 512'],
    ['options', '[options]\na = { x = 1, y = 2 }\nb = 1', { options: { a: { x: 3 }, b: null } }, '[options]\na = { x = 3 }']
  ]
  for (const [name, before, patch, after] of table) {
    const { raw, problems } = patchSlotFile(parseToml(before), patch, shippedProviders)
    t.same(problems, [], name)
    t.same(raw, parseToml(after), name)
  }
})

t.test('a patch that is wrong is told in its own words', async t => {
  const table: readonly (readonly [string, Table, string])[] = [
    ['[model]\nctx_size = 512', { context_size: 5 }, 'context_size must be at least 128'],
    ['context_size = 512', { model: { ctx_size: 'x' } }, 'model.ctx_size must be a whole number, got text'],
    ['', { devcie: null }, 'devcie is not a known key'],
    ['', { model: { nope: null } }, 'model.nope is not a known key'],
    ['', { context_size: 512, model: { context_size: 1024 } }, 'model.context_size contradicts context_size; keep one of the two'],
    ['', { slot: { device: 'x' } }, 'slot.device must be one of gpu-rocm, gpu-vulkan, gpu-cuda, cpu, npu'],
    ['workers = 0', { port: 8081 }, 'workers must be at least 1']
  ]
  for (const [before, patch, expect] of table) {
    const { raw, problems, userPath } = patchSlotFile(parseToml(before), patch)
    const all = [...problems, ...checkSlotFile('agent', raw, 'client', foldSlotFile(raw), userPath).problems]
    t.same(all.map(({ path, message }) => `${dotted(path)} ${message}`)[0], expect, expect)
  }
  const repaired = patchSlotFile({ devcie: 'x' }, { devcie: null })
  t.same([repaired.raw, repaired.problems], [{}, []], 'an unknown key that is in the file may be deleted')
})

t.test('whatever the placements, a patch has the effect of a merge of the folded values', async () => {
  const flat = fc.record({
    device: fc.constantFrom('cpu', 'npu'), port: fc.constantFrom(8081, 8082), ctx_size: fc.constantFrom(512, 1024),
    model: fc.constantFrom('a', 'b'), extra_args: fc.constantFrom(['x'], []), env: fc.constantFrom({ A: '1' }, { B: '2' }), n_gpu_layers: fc.constantFrom(1, 2)
  }, { requiredKeys: [] })
  const nested = fc.record({
    port: fc.constantFrom(8081, 8083), vision: fc.boolean(),
    model: fc.record({
      default: fc.constantFrom('c', 'd'), context_size: fc.constantFrom(128, 256), labels: fc.constantFrom(['l'], [])
    }, { requiredKeys: [] }),
    server: fc.record({ env: fc.constantFrom({ C: '3' }, {}), extra_args: fc.constantFrom('s', ['t']) }, { requiredKeys: [] }),
    defaults: fc.record({ ctx_size: fc.constantFrom(2048, 4096) }, { requiredKeys: [] })
  }, { requiredKeys: [] })
  const inSlot = fc.tuple(flat, nested)
    .map(([{ model: _, ...scalars }, tables]) => ({ slot: { ...scalars, port: 8084 }, ...tables, port: 8084 }))
  const gone = fc.constant(null)
  const nulls = fc.record({ context_size: gone, server: gone, port: gone, vision: gone }, { requiredKeys: [] })
  const file = fc.oneof(flat, nested, inSlot)
  const patch = fc.oneof(flat, nested, nulls)
  fc.assert(fc.property(file, patch, (before, change) => {
    const from = foldSlotFile(before as Table)
    const by = foldSlotFile(change as Table)
    fc.pre(from.problems.length === 0 && by.problems.length === 0)
    const { raw, problems } = patchSlotFile(before as Table, change as Table)
    const { provider: _, ...got } = foldSlotFile(raw).value
    const { provider: _p, ...old } = from.value
    const { provider: _q, ...wanted } = by.value
    const sound = problems.length === 0 && foldSlotFile(raw).problems.length === 0
    return sound && isDeepStrictEqual(clean(got), clean(merge(old, wanted)))
  }), { numRuns: 1000, seed: 20260101 })
})

/** The patch rule itself, on values that are folded already. */
function merge (base: Table, patch: Table): Table {
  return Object.entries(patch).reduce<Table>((next, [key, value]) => {
    const old = next[key]
    if (isTable(value) && isTable(old)) return { ...next, [key]: { ...old, ...value } }
    return { ...next, [key]: value }
  }, base)
}

/** Without nulls and without tables that hold nothing: both mean absent. */
function clean (table: Table): Table {
  const entries = Object.entries(table).filter(([, value]) => value !== null)
    .map(([key, value]) => [key, isTable(value) ? clean(value) : value] as const)
  return Object.fromEntries(entries.filter(([key, value]) => key === 'env' || !isTable(value) || Object.keys(value).length > 0))
}

t.test('a patch costs what it is long, however wide it is', async t => {
  const wide = (value: unknown): Table => Object.fromEntries(Array.from({ length: 8_000 }, (_, i) => [`k${i}`, value]))
  const cases: ReadonlyArray<readonly [string, Table, Table]> = [
    ['new keys', {}, wide(1)], ['new options', {}, { options: wide(1) }], ['changed options', { options: wide(1) }, { options: wide(2) }],
    ['deleted options', { options: wide(1) }, { options: wide(null) }], ['unknown keys deleted', {}, wide(null)],
    ['two placements', { slot: { options: wide(1) } }, { slot: { options: wide(2), ...wide(3) }, options: wide(2) }]
  ]
  for (const [name, file, patch] of cases) {
    const times = await timesOfJson(() => { patchSlotFile(file, patch).userPath(['k7']) })
    t.ok(times < 100, `${name}: ${Math.round(times)} times a megabyte of JSON`)
  }
})

t.test('many problems are counted, and the first of them are told', async t => {
  const { problems } = checkSlotFile('agent', Object.fromEntries(Array.from({ length: 8_000 }, (_, i) => [`k${i}`, 1])), 'client')
  t.equal(problems.length, MAX_PROBLEMS + 1)
  t.match(problems[0], { path: ['k0'], message: /^is not a known key; known here: .*workers/ })
  t.match(problems[1], { path: ['k1'], message: /^is not a known key$/ })
  const { details, message } = invalid('slot agent', problems)
  t.match(message, /7950 more problems not listed here$/)
  t.match(details.fields, { length: MAX_PROBLEMS + 1 })
  t.ok(message.length < 8_000, `${message.length} characters`)
  const long = invalid('slot agent', checkSlotFile('agent', { ['x'.repeat(100_000)]: 1 }, 'client').problems)
  t.ok(JSON.stringify(long.details).length < 5_000, 'a key is cut where it is shown')
})
