import { deflateSync } from 'node:zlib'
import { f32s, writeGguf, type GgufTensor, type GgufValue } from '../../../../plugins/services/demo/gguf-writer.js'

const WIDTH = 32
const IMAGE_SIDE = 28
const PATCH_SIDE = 14
/** One more than the layer whose output counts. */
const BLOCKS = 2

/** Tokens that an image takes in the prompt. */
export const imageTokens = (IMAGE_SIDE / PATCH_SIDE) ** 2

/**
 * A projector sidecar for tests: a vision tower that llama.cpp loads and runs, of which every weight is zero. A model
 * built as the demo model is says its sentence with it as without; what shows is that the image was read.
 * @param modelWidth embedding length of the text model
 */
export function projectorGguf (modelWidth: number): Buffer {
  const u32 = (value: number): GgufValue => ({ type: 'u32', value })
  const f32 = (value: number): GgufValue => ({ type: 'f32', value })
  const string = (value: string): GgufValue => ({ type: 'string', value })
  const yes: GgufValue = { type: 'bool', value: true }
  const thirds = (value: number): GgufValue => ({ type: 'f32s', value: [value, value, value] })
  const filled = (name: string, dims: readonly number[], value = 0): GgufTensor =>
    ({ name, dims, type: 'f32', data: f32s(new Array<number>(dims.reduce((a, b) => a * b)).fill(value)) })
  const norm = (name: string): GgufTensor[] => [filled(`${name}.weight`, [WIDTH], 1), filled(`${name}.bias`, [WIDTH])]
  const linear = (name: string, width: number): GgufTensor[] => [filled(`${name}.weight`, [WIDTH, width]), filled(`${name}.bias`, [width])]
  const blocks = Array.from({ length: BLOCKS }, (_, i) => [
    ...['attn_q', 'attn_k', 'attn_v', 'attn_out', 'ffn_up', 'ffn_down'].flatMap(part => linear(`v.blk.${i}.${part}`, WIDTH)),
    ...['ln1', 'ln2'].flatMap(part => norm(`v.blk.${i}.${part}`))
  ])
  return writeGguf([
    ['general.architecture', string('clip')],
    ['general.type', string('mmproj')],
    ['clip.has_vision_encoder', yes],
    ['clip.projector_type', string('mlp')],
    ['clip.use_gelu', yes],
    ['clip.vision.image_size', u32(IMAGE_SIDE)],
    ['clip.vision.patch_size', u32(PATCH_SIDE)],
    ['clip.vision.embedding_length', u32(WIDTH)],
    ['clip.vision.feed_forward_length', u32(WIDTH)],
    ['clip.vision.projection_dim', u32(modelWidth)],
    ['clip.vision.block_count', u32(BLOCKS)],
    ['clip.vision.attention.head_count', u32(1)],
    ['clip.vision.attention.layer_norm_epsilon', f32(1e-5)],
    ['clip.vision.image_mean', thirds(0.5)],
    ['clip.vision.image_std', thirds(0.5)]
  ], [
    filled('v.class_embd', [WIDTH]),
    { name: 'v.patch_embd.weight', dims: [PATCH_SIDE, PATCH_SIDE, 3, WIDTH], type: 'f16', data: Buffer.alloc(PATCH_SIDE ** 2 * 3 * WIDTH * 2) },
    filled('v.position_embd.weight', [WIDTH, imageTokens + 1]),
    ...norm('v.pre_ln'),
    ...norm('v.post_ln'),
    ...blocks.flat(),
    ...linear('mm.0', WIDTH),
    ...linear('mm.2', modelWidth)
  ])
}

/** A grey PNG of the projector's size. */
export function greyPng (side = IMAGE_SIDE): Buffer {
  const rows = Buffer.alloc(side * (1 + side * 3), 0x64)
  for (let row = 0; row < side; row++) rows[row * (1 + side * 3)] = 0
  const header = Buffer.alloc(13)
  header.writeUInt32BE(side, 0)
  header.writeUInt32BE(side, 4)
  header.set([8, 2], 8)
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))
  ])
}

function chunk (type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}

function crc32 (bytes: Buffer): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}
