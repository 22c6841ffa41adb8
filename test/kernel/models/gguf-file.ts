import { writeGguf, type GgufTensor, type GgufValue } from '../../../plugins/services/demo/gguf-writer.js'

export const text = (value: string): GgufValue => ({ type: 'string', value })
export const number = (value: number): GgufValue => ({ type: 'u32', value })

export interface GgufOptions {
  readonly architecture?: string
  readonly keys?: Readonly<Record<string, GgufValue>>
  /** Bytes of weights; more of them make a larger file. */
  readonly weights?: number
}

/** A small GGUF file with a whole header. */
export function ggufFile ({ architecture = 'llama', keys = {}, weights = 256 }: GgufOptions = {}): Buffer {
  const tensor: GgufTensor = { name: 'token_embd.weight', dims: [weights / 4], type: 'f32', data: Buffer.alloc(weights, 7) }
  return writeGguf([['general.architecture', text(architecture)], ...Object.entries(keys)], [tensor])
}
