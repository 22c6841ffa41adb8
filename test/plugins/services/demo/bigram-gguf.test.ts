import { join } from 'node:path'
import { readGgufFileInfo } from 'node-llama-cpp'
import t from 'tap'
import { bigramChatTemplate, bigramGguf } from '../../../../plugins/services/demo/bigram-gguf.js'
import { bigramVocabulary } from '../../../../plugins/services/demo/bigram-vocabulary.js'
import { demoSentence, sentenceFor } from '../../../../plugins/services/demo/sentence.js'

t.test('the demo\'s sentence has no word twice and says what to type next', async t => {
  for (const sentence of [demoSentence, sentenceFor('svc')]) {
    const words = sentence.split(' ')
    t.equal(new Set(words).size, words.length, 'no word twice')
  }
  t.match(demoSentence, /\bsvc\b/, 'says whose it is')
  t.match(demoSentence, /demo model.*real inference engine/)
  t.match(demoSentence, /`npx svc slot list`$/, 'says what to type next')
  t.match(sentenceFor('svc'), /`svc slot list`$/)
})

t.test('the file, as another reader sees it', async t => {
  const bytes = bigramGguf()
  const file = join(t.testdir({ 'demo.gguf': bytes }), 'demo.gguf')
  const info = await readGgufFileInfo(file, { sourceType: 'filesystem' })
  t.match(info.metadata, {
    general: { architecture: 'llama', name: 'svc demo model' },
    llama: { context_length: 32_768, embedding_length: 1024, block_count: 1, pooling_type: 1 },
    tokenizer: { chat_template: bigramChatTemplate, ggml: { model: 'llama', bos_token_id: 1, eos_token_id: 2 } }
  })
  const tensors = info.fullTensorInfo ?? []
  t.equal(tensors.length, 12)
  for (const tensor of tensors) t.equal(Number(tensor.offset) % 32, 0, `${tensor.name} is aligned`)
  const last = tensors.at(-1)!
  t.match(last, { name: 'output.weight', dimensions: [1024, 1004] })
  t.equal(Number(last.fileOffset) + 1024 * 1004 * 2, bytes.length, 'nothing is missing and nothing is left')
  t.ok(bytes.length < 5_000_000)
  t.ok(bytes.equals(bigramGguf()), 'equal options give equal bytes')
})

t.test('a bigram model has the name and context length that were asked for', async t => {
  const info = await readGgufFileInfo(
    join(t.testdir({ 'm.gguf': bigramGguf({ sentence: 'one two', contextLength: 512, name: 'two' }) }), 'm.gguf'), { sourceType: 'filesystem' })
  t.match(info.metadata, { general: { name: 'two' }, llama: { context_length: 512 } })
  t.throws(() => bigramGguf({ sentence: 'one two one' }), { message: /'one' stands in the sentence twice/ })
  t.throws(() => bigramGguf({ sentence: ' ' }), { message: /no words/ })
})

t.test('the vocabulary can write any text, and has no token twice', async t => {
  const texts = (sentence: string, cycle: boolean): string[] => {
    const { tokens, words } = bigramVocabulary(sentence, cycle)
    return words.map(id => tokens[id]!.text)
  }
  t.same(texts('one two', false), ['one\u2581', 'two'], 'the space belongs to the word before it')
  t.same(texts('one two', true), ['one\u2581', 'two\u2581'], 'a circle has no last word')
  t.same(texts('<0xE6> two', false), ['<0xE6>', 'two'], 'a byte is the byte token')
  const { tokens } = bigramVocabulary(demoSentence, false)
  t.equal(new Set(tokens.map(token => token.text)).size, tokens.length, 'no token twice')
  t.same(tokens.slice(6, 262).filter(token => token.type === 6).length, 256, 'any text can be written in bytes')
})
