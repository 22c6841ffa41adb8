import t from 'tap'
import { parseEngineArgs, samplingDefaults } from '../../../../plugins/providers/llm-server/embedded/args.js'
import { createChatRenderer } from '../../../../plugins/providers/llm-server/embedded/chat-template.js'
import { threadCount } from '../../../../plugins/providers/llm-server/embedded/model-host.js'
import { chatSchema, generationSchema } from '../../../../plugins/providers/llm-server/embedded/requests.js'
import { limitsOf, samplingOf } from '../../../../plugins/providers/llm-server/embedded/sampler-options.js'
import { normalised } from '../../../../plugins/providers/llm-server/embedded/vector-engine.js'
import { bigramChatTemplate } from '../../../../plugins/services/demo/bigram-gguf.js'

t.test('the command line of llama-server', async t => {
  const { args, ignored } = parseEngineArgs([
    '-m', '/a.gguf', '--alias', 'a', '-c', '512', '--port', '99', '-np', '3', '-kvu', '--temp', '0', '-t', '4',
    '--mmproj', '/p', '--metrics', '--no-mmap', '-fa', 'on', '-c', '1024', '--seed', '-1'
  ])
  t.match(args, {
    model: '/a.gguf', alias: 'a', host: '127.0.0.1', port: 99, contextSize: 1024, parallel: 3, kvUnified: true, threads: 4, mode: 'text',
    contextShift: false, pooling: null, physicalBatch: null, chatTemplateFile: null,
    sampling: { ...samplingDefaults, temperature: 0 }
  })
  t.same(ignored, ['--mmproj', '--no-mmap', '-fa'], 'what it does not have, it says')

  const modes: Array<[string[], object]> = [
    [['--embeddings', '--pooling', 'mean', '-ub', '64'], { mode: 'embedding', pooling: 'mean', physicalBatch: 64 }],
    [['--embedding'], { mode: 'embedding', pooling: null }],
    [['--rerank'], { mode: 'reranking' }],
    [['--context-shift'], { contextShift: true }],
    [['--context-shift', '--no-context-shift'], { contextShift: false }],
    [['-kvu', '-no-kvu'], { kvUnified: false }],
    [['-np', '-1'], { parallel: 1, alias: '/a' }]
  ]
  for (const [argv, expected] of modes) t.match(parseEngineArgs(['-m', '/a', ...argv]).args, expected, argv.join(' '))

  const wrong: Array<[string[], RegExp]> = [
    [[], /--model PATH is missing/],
    [['-m', 'x', '--port', 'many'], /--port must be a number/],
    [['-m', 'x', '-c', '-5'], /-c must be a whole number/],
    [['-m', 'x', '--pooling', 'max'], /--pooling must be one of/],
    [['-m', 'x', '--embedding', '--rerank'], /exclude each other/]
  ]
  for (const [argv, message] of wrong) t.throws(() => parseEngineArgs(argv), { message }, argv.join(' '))
})

t.test('threads: no more than cores, one for a small model', async t => {
  const large = 2 ** 32
  t.equal(threadCount({ asked: null, cores: 8, modelBytes: large }), 8)
  t.equal(threadCount({ asked: 4, cores: 8, modelBytes: large }), 4)
  t.equal(threadCount({ asked: 16, cores: 8, modelBytes: large }), 8)
  t.equal(threadCount({ asked: 16, cores: 8, modelBytes: 5_000_000 }), 1)
})

t.test('sampling options are brought within bounds, and null is the default', async t => {
  const sampling = (body: object): object => samplingOf(generationSchema.parse(body), samplingDefaults)
  const limits = (body: object): object => limitsOf(generationSchema.parse(body), samplingDefaults)
  t.same(sampling({}), { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, seed: null, penalties: null, bias: [] })
  t.same(sampling({ temperature: null, seed: null }), sampling({}), 'null is the default')
  t.match(sampling({ seed: 5, temperature: 0, top_k: -1 }), { seed: 5, temperature: 0, topK: 0 })
  t.match(sampling({ seed: 0xFFFFFFFF }), { seed: null })
  t.match(sampling({ frequency_penalty: 1 }), { penalties: { lastTokens: 64, repeat: 1, frequency: 1, presence: 0 } })
  t.match(sampling({ repeat_penalty: 1.1, repeat_last_n: 0 }), { penalties: null })
  t.match(sampling({ logit_bias: { 7: -100 } }), { bias: [[7, -100]] })
  t.match(sampling({ logit_bias: [[7, 1.5]] }), { bias: [[7, 1.5]] })
  t.same(limits({}), { maxTokens: null, stops: [] })
  t.same(limits({ max_tokens: 0, stop: 'x' }), { maxTokens: 1, stops: ['x'] })
  t.same(limits({ max_completion_tokens: 5, max_tokens: 9, stop: ['x', 'y'] }), { maxTokens: 5, stops: ['x', 'y'] })
  t.same(limits({ n_predict: -1 }), { maxTokens: null, stops: [] })
})

t.test('a chat template is rendered as its author meant, and its refusals are told', async t => {
  const tokens = { bos: '<s>', eos: '</s>' }
  const messages = [
    { role: 'system', content: 'Be kind' },
    { role: 'user', content: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }] },
    { role: 'assistant', content: null }
  ]
  const render = (source: string | null, body: object): string =>
    createChatRenderer(source, tokens).render(chatSchema.parse(body)).prompt
  t.equal(render(bigramChatTemplate, { messages }), '<|system|>Be kind<|user|>a\nb<|assistant|><|assistant|>')
  t.equal(render(bigramChatTemplate, { messages, add_generation_prompt: false }), '<|system|>Be kind<|user|>a\nb<|assistant|>')
  t.match(render(null, { messages: messages.slice(0, 1) }), '<|im_start|>system\nBe kind<|im_end|>\n<|im_start|>assistant\n')
  const thinking = { messages, chat_template_kwargs: { enable_thinking: true } }
  t.equal(render('{{ bos_token }}{% if enable_thinking %}think{% endif %}', thinking), '<s>think')
  t.throws(() => render('{{ raise_exception("only users") }}', { messages }), { status: 400, message: /only users/ })
  t.throws(() => createChatRenderer('{% if %}', tokens), 'a template that cannot be read is told at the start')
})

t.test('vectors are scaled to length 1, and zero vectors stay', async t => {
  t.same(normalised([3, 4]), [0.6, 0.8])
  t.same(normalised([0, 0]), [0, 0])
})
