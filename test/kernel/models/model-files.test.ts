import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Clock } from '../../../kernel/contract/index.js'
import { HeaderReader } from '../../../kernel/models/header-reader.js'
import { shippedProviders } from '../../providers.js'
import { createModelFiles } from '../../../kernel/models/model-files.js'
import { FakeClock } from '../../../kernel/testing/index.js'
import { bigramGguf } from '../../../plugins/services/demo/bigram-gguf.js'
import { ggufFile, number, text } from './gguf-file.js'

t.test('the header of a GGUF file yields the facts of a model', async t => {
  const files = createModelFiles(new FakeClock(), () => shippedProviders.modelNames)
  t.teardown(() => files.close())
  const folder = t.testdir()
  const inspect = (name: string, bytes: Buffer) => {
    writeFileSync(join(folder, name), bytes)
    return files.inspect(join(folder, name))
  }
  t.match(await inspect('demo.gguf', bigramGguf()), {
    kind: 'model', architecture: 'llama', name: 'svc demo model', license: 'mit', quant: 'F16', context_length: 32_768, embedding_length: 1024,
    block_count: 1, parameter_count: Number, chat_template: /assistant/, mtp: false, split: null, capabilities: ['chat', 'embed']
  })
  t.match(await inspect('Big-Q4_K_M.gguf', ggufFile({
    architecture: 'qwen3moe',
    keys: {
      'general.file_type': number(7),
      'qwen3moe.context_length': number(262_144),
      'qwen3moe.nextn_predict_layers': number(1),
      'tokenizer.chat_template': text('{% if tools %}x{% endif %}'),
      'split.count': number(3),
      'split.no': number(1)
    }
  })), { quant: 'Q4_K_M', context_length: 262_144, tool_calling: true, mtp: true, split: { part: 2, parts: 3 }, capabilities: ['chat'] })
  t.match(await inspect('plain.gguf', ggufFile({ keys: { 'general.file_type': number(18) } })), {
    quant: 'Q6_K', context_length: null, chat_template: null, tool_calling: false, license: null, name: null, parameter_count: 64
  })
  const cases = [
    ['mmproj-model-f16.gguf', {}, { kind: 'projector', capabilities: [] }],
    ['sight.gguf', { architecture: 'clip' }, { kind: 'projector' }],
    ['tuned.gguf', { keys: { 'general.type': text('adapter') } }, { kind: 'adapter', capabilities: [] }],
    ['x.gguf', { architecture: 'bert', keys: { 'bert.context_length': number(512) } }, { capabilities: ['embed'], context_length: 512 }],
    ['r.gguf', { architecture: 'bert', keys: { 'bert.pooling_type': number(4) } }, { capabilities: ['rerank'] }],
    ['qwen3-embedding.gguf', { keys: { 'llama.pooling_type': number(3), 'tokenizer.chat_template': text('x') } }, { capabilities: ['embed'] }],
    ['qwen3-vl.gguf', {}, { capabilities: ['chat', 'vision'] }]
  ] as const
  for (const [name, options, wanted] of cases) t.match(await inspect(name, ggufFile(options)), wanted, name)
  t.same(files.guess('bge-reranker.safetensors'), ['rerank'])
  t.equal(files.guess('who-knows.safetensors'), null)
})

t.test('files that are none, cut short, or damaged', async t => {
  const files = createModelFiles(new FakeClock(), () => shippedProviders.modelNames)
  t.teardown(() => files.close())
  const folder = t.testdir()
  const good = bigramGguf()
  const huge = Buffer.from(ggufFile())
  huge.writeBigUInt64LE(2n ** 60n, 16)
  const broken: ReadonlyArray<readonly [string, Buffer, RegExp]> = [
    ['empty', Buffer.alloc(0), /magic/], ['text', Buffer.from('hello, this is a README'), /magic/], ['half a word', Buffer.from('GG'), /magic/],
    ['header cut', good.subarray(0, 40), /middle of its header/], ['header cut later', good.subarray(0, 9_000), /middle of its header/],
    ['weights cut', good.subarray(0, good.length - 1), /truncated: tensor output\.weight needs \d+ bytes/],
    ['a version of its own', Buffer.concat([good.subarray(0, 4), Buffer.from([99, 0, 0, 0]), good.subarray(8)]), /version/],
    ['a count from hell', huge, /exceeds maximum/]
  ]
  for (const [name, bytes, why] of broken) {
    writeFileSync(join(folder, `${name}.gguf`), bytes)
    await t.rejects(files.inspect(join(folder, `${name}.gguf`)), { code: 'model.file_invalid', status: 400, message: why }, name)
  }
  mkdirSync(join(folder, 'folder.gguf'))
  await t.rejects(files.inspect(join(folder, 'folder.gguf')), { code: 'model.path_missing', message: /is a folder/ })
  await t.rejects(files.inspect(join(folder, 'nobody.gguf')), { code: 'model.path_missing', message: /does not exist/ })
  await t.rejects(files.inspect('relative.gguf'), { code: 'model.path_missing', message: /absolute/ })
})

t.test('noise in a header never hangs it or ends more than itself', async t => {
  const files = createModelFiles(new FakeClock(), () => shippedProviders.modelNames)
  t.teardown(() => files.close())
  const folder = t.testdir()
  const good = ggufFile({ keys: { 'a.b': text('c'), 'llama.context_length': number(5) } })
  let seed = 7
  const random = (below: number): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % below
  let refused = 0
  for (let i = 0; i < 150; i++) {
    const bytes = Buffer.from(good)
    for (let n = 0; n < 3; n++) bytes[4 + random(bytes.length - 260)] = random(256)
    const path = join(folder, 'noise.gguf')
    writeFileSync(path, bytes)
    await files.inspect(path).catch((error: { code: string }) => {
      t.equal(error.code, 'model.file_invalid')
      refused++
    })
  }
  t.ok(refused > 30, `${refused} of 150 refused`)
})

t.test('one who gives up, and a reader that is slow or closed', async t => {
  // fires at once: a clock that lets others go on first would let the reader answer in time
  const timers = new Set<() => void>()
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    setTimer: (_ms, fn) => {
      timers.add(fn)
      return { cancel: () => timers.delete(fn) }
    }
  }
  const path = join(t.testdir({ 'm.gguf': bigramGguf() }), 'm.gguf')
  const reader = new HeaderReader(clock, 1000)
  const leaver = new AbortController()
  const left = reader.read(path, leaver.signal)
  const waiting = reader.read(path)
  leaver.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
  t.match(await waiting, { parameter_count: Number }, 'the next one has its turn')
  await t.rejects(reader.read(path, AbortSignal.abort(new Error('gone'))), { message: 'gone' })

  const slow = t.rejects(reader.read(path), { message: /longer than 1 s/ })
  const next = reader.read(path)
  t.equal(timers.size, 1)
  for (const fire of [...timers]) fire()
  await slow
  t.match(await next, { parameter_count: Number }, 'a new thread goes on')
  const late = t.rejects(reader.read(path), { message: /shutting down/ })
  await reader.close()
  await late
  await t.rejects(reader.read(path), { message: /shutting down/ })
  t.equal(timers.size, 0)
})
