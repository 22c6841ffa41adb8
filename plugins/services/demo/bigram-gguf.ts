import { bigramVocabulary, tokenIds, type BigramVocabulary, type Token } from './bigram-vocabulary.js'
import { f32s, writeGguf, type GgufTensor, type GgufValue } from './gguf-writer.js'
import { demoSentence } from './sentence.js'

export interface BigramOptions {
  /** What the model says, word by word; no word may stand in it twice. */
  readonly sentence?: string
  /** Starts over after the last word instead of ending, so that an answer lasts until it is cut off. */
  readonly cycle?: boolean
  /** Has marks for a text before a gap, one behind it and the gap, as models of code do: an engine lets it fill one. */
  readonly infill?: boolean
  /** Tokens. */
  readonly contextLength?: number
  /** `general.name` of the file. */
  readonly name?: string
}

/** Renders `<|role|>content` for every message; what follows `<|assistant|>` is the sentence. */
export const bigramChatTemplate = '{% for message in messages %}{{ \'<|\' + message[\'role\'] + \'|>\' + message[\'content\'] }}' +
  '{% endfor %}{% if add_generation_prompt %}{{ \'<|assistant|>\' }}{% endif %}'

/** Tokens; the window of the demo model unless the options say otherwise. */
export const bigramContextLength = 32_768

const HEAD_SIZE = 32
const FEED_FORWARD = 32
const LOGIT_EXPONENT = 1
const MEAN_POOLING = 1

/**
 * A llama-architecture GGUF that says one sentence and ends, in any engine that reads GGUF.
 *
 * Attention output and feed-forward are zero, so the residual stream is the embedding of the last token alone.
 * That is one-hot, and `output.weight` holds one weight for each token, in the row of its successor: an exact
 * bigram table. `output_norm.weight` sets how much a token counts in a mean-pooled embedding; the bigram
 * weights are divided by it, so that answers do not depend on it. Every number in the file is zero or a power
 * of two, so half precision is exact. Equal options give equal bytes.
 *
 * @throws TypeError when a word stands in the sentence twice.
 */
export function bigramGguf (options: BigramOptions = {}): Buffer {
  const { sentence = demoSentence, cycle = false, infill = false } = options
  const { contextLength = bigramContextLength, name = 'svc demo model' } = options
  const vocabulary = bigramVocabulary(sentence, cycle)
  const width = Math.ceil(vocabulary.tokens.length / HEAD_SIZE) * HEAD_SIZE
  const keys = [...keysOf(vocabulary, { name, contextLength, width }), ...infill ? gapKeys : []]
  return writeGguf(keys, tensorsOf(vocabulary, width, cycle))
}

/** The marks of roles serve for those of a gap. */
const gapKeys = (['pre', 'suf', 'mid'] as const).map((mark, i) =>
  [`tokenizer.ggml.fim_${mark}_token_id`, { type: 'u32', value: tokenIds.system + i } as const] as const)

function keysOf (
  { tokens }: BigramVocabulary, model: { readonly name: string, readonly contextLength: number, readonly width: number }
): Array<readonly [string, GgufValue]> {
  const u32 = (value: number): GgufValue => ({ type: 'u32', value })
  const string = (value: string): GgufValue => ({ type: 'string', value })
  return [
    ['general.architecture', string('llama')],
    ['general.name', string(model.name)],
    ['general.license', string('mit')],
    ['llama.context_length', u32(model.contextLength)],
    ['llama.embedding_length', u32(model.width)],
    ['llama.block_count', u32(1)],
    ['llama.feed_forward_length', u32(FEED_FORWARD)],
    ['llama.attention.head_count', u32(1)],
    ['llama.attention.head_count_kv', u32(1)],
    ['llama.attention.key_length', u32(HEAD_SIZE)],
    ['llama.attention.value_length', u32(HEAD_SIZE)],
    ['llama.attention.layer_norm_rms_epsilon', { type: 'f32', value: 1e-6 }],
    ['llama.rope.dimension_count', u32(HEAD_SIZE)],
    ['llama.pooling_type', u32(MEAN_POOLING)],
    ['llama.vocab_size', u32(tokens.length)],
    ['tokenizer.ggml.model', string('llama')],
    ['tokenizer.ggml.tokens', { type: 'strings', value: tokens.map(t => t.text) }],
    ['tokenizer.ggml.scores', { type: 'f32s', value: tokens.map(t => t.score) }],
    ['tokenizer.ggml.token_type', { type: 'i32s', value: tokens.map(t => t.type) }],
    ['tokenizer.ggml.unknown_token_id', u32(tokenIds.unknown)],
    ['tokenizer.ggml.bos_token_id', u32(tokenIds.bos)],
    ['tokenizer.ggml.eos_token_id', u32(tokenIds.eos)],
    ['tokenizer.ggml.add_bos_token', { type: 'bool', value: true }],
    ['tokenizer.ggml.add_space_prefix', { type: 'bool', value: false }],
    ['tokenizer.chat_template', string(bigramChatTemplate)]
  ]
}

function tensorsOf (vocabulary: BigramVocabulary, width: number, cycle: boolean): GgufTensor[] {
  const { tokens } = vocabulary
  const embedding = new HalfMatrix(width, tokens.length)
  const output = new HalfMatrix(width, tokens.length)
  const successor = successors(vocabulary, cycle)
  tokens.forEach((token, id) => {
    embedding.set(id, id, 0)
    output.set(successor(id), id, LOGIT_EXPONENT - token.weightExponent)
  })
  const zeros = (name: string, columns: number, rows: number): GgufTensor => new HalfMatrix(columns, rows).tensor(`blk.0.${name}.weight`)
  const norm = (name: string, values: readonly number[]): GgufTensor => ({ name: `${name}.weight`, dims: [width], type: 'f32', data: f32s(values) })
  const ones = new Array<number>(width).fill(1)
  return [
    embedding.tensor('token_embd.weight'),
    norm('blk.0.attn_norm', ones),
    zeros('attn_q', width, HEAD_SIZE),
    zeros('attn_k', width, HEAD_SIZE),
    zeros('attn_v', width, HEAD_SIZE),
    zeros('attn_output', HEAD_SIZE, width),
    norm('blk.0.ffn_norm', ones),
    zeros('ffn_gate', width, FEED_FORWARD),
    zeros('ffn_up', width, FEED_FORWARD),
    zeros('ffn_down', FEED_FORWARD, width),
    norm('output_norm', ones.map((one, dim) => weightOf(tokens[dim]) * one)),
    output.tensor('output.weight')
  ]
}

/** After any token that is no word comes the first word; after the last one the end, or the first again. */
function successors ({ words }: BigramVocabulary, cycle: boolean): (id: number) => number {
  const first = words[0]!
  const next = new Map(words.map((id, i) => [id, words[i + 1] ?? (cycle ? first : tokenIds.eos)]))
  return id => next.get(id) ?? first
}

function weightOf (token: Token | undefined): number {
  return token === undefined ? 1 : 2 ** token.weightExponent
}

/** A half-precision matrix of zeros and powers of two, row by row. */
class HalfMatrix {
  readonly #data: Buffer

  constructor (readonly columns: number, readonly rows: number) {
    this.#data = Buffer.alloc(columns * rows * 2)
  }

  /** Sets a cell to 2 to the power of `exponent`, -14 to 15. */
  set (row: number, column: number, exponent: number): void {
    this.#data.writeUInt16LE((exponent + 15) << 10, (row * this.columns + column) * 2)
  }

  tensor (name: string): GgufTensor {
    return { name, dims: [this.columns, this.rows], type: 'f16', data: this.#data }
  }
}
