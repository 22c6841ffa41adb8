import { bigramVocabulary } from '../../../../plugins/services/demo/bigram-vocabulary.js'
import { f32s, writeGguf, type GgufTensor, type GgufValue } from '../../../../plugins/services/demo/gguf-writer.js'

const HEAD_SIZE = 32
const FIRST_BYTE = 6

/**
 * A model with a ranking head, for tests: what a document ends with is its relevance, from `0` to `9`. Built as
 * the demo model is (the residual stream is the last token alone), on an architecture whose head is a softmax
 * over two labels.
 */
export function rankGguf (): Buffer {
  const { tokens } = bigramVocabulary('unused', false)
  const width = Math.ceil(tokens.length / HEAD_SIZE) * HEAD_SIZE
  const u32 = (value: number): GgufValue => ({ type: 'u32', value })
  const string = (value: string): GgufValue => ({ type: 'string', value })
  type Cell = readonly [row: number, column: number, value: number]
  const matrix = (name: string, columns: number, rows: number, cells: readonly Cell[] = []): GgufTensor => {
    const values = new Array<number>(columns * rows).fill(0)
    for (const [row, column, value] of cells) values[row * columns + column] = value
    return { name: `${name}.weight`, dims: [columns, rows], type: 'f32', data: f32s(values) }
  }
  const norm = (name: string, size: number): GgufTensor =>
    ({ name: `${name}.weight`, dims: [size], type: 'f32', data: f32s(new Array<number>(size).fill(1)) })
  const digits = Array.from({ length: 10 }, (_, digit) => [0, FIRST_BYTE + 0x30 + digit, (digit - 4.5) / 32] as const)
  return writeGguf([
    ['general.architecture', string('qwen3')],
    ['qwen3.context_length', u32(4096)],
    ['qwen3.embedding_length', u32(width)],
    ['qwen3.block_count', u32(1)],
    ['qwen3.feed_forward_length', u32(HEAD_SIZE)],
    ['qwen3.attention.head_count', u32(1)],
    ['qwen3.attention.head_count_kv', u32(1)],
    ['qwen3.attention.key_length', u32(HEAD_SIZE)],
    ['qwen3.attention.value_length', u32(HEAD_SIZE)],
    ['qwen3.attention.layer_norm_rms_epsilon', { type: 'f32', value: 1e-6 }],
    ['qwen3.rope.dimension_count', u32(HEAD_SIZE)],
    ['qwen3.pooling_type', u32(4)],
    ['qwen3.classifier.output_labels', { type: 'strings', value: ['yes', 'no'] }],
    ['tokenizer.ggml.model', string('llama')],
    ['tokenizer.ggml.tokens', { type: 'strings', value: tokens.map(token => token.text) }],
    ['tokenizer.ggml.scores', { type: 'f32s', value: tokens.map(token => token.score) }],
    ['tokenizer.ggml.token_type', { type: 'i32s', value: tokens.map(token => token.type) }],
    ['tokenizer.ggml.bos_token_id', u32(1)],
    ['tokenizer.ggml.eos_token_id', u32(2)],
    ['tokenizer.ggml.add_space_prefix', { type: 'bool', value: false }],
    ['tokenizer.chat_template.rerank', string('{query} {document}')]
  ], [
    matrix('token_embd', width, tokens.length, tokens.map((_, id) => [id, id, 1] as const)),
    norm('blk.0.attn_norm', width),
    matrix('blk.0.attn_q', width, HEAD_SIZE),
    matrix('blk.0.attn_k', width, HEAD_SIZE),
    matrix('blk.0.attn_v', width, HEAD_SIZE),
    matrix('blk.0.attn_output', HEAD_SIZE, width),
    norm('blk.0.attn_q_norm', HEAD_SIZE),
    norm('blk.0.attn_k_norm', HEAD_SIZE),
    norm('blk.0.ffn_norm', width),
    matrix('blk.0.ffn_gate', width, HEAD_SIZE),
    matrix('blk.0.ffn_up', width, HEAD_SIZE),
    matrix('blk.0.ffn_down', HEAD_SIZE, width),
    norm('output_norm', width),
    matrix('output', width, tokens.length),
    matrix('cls.output', width, 2, digits)
  ])
}
