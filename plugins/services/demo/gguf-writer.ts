/** Value types of the GGUF format, version 3. */
const types = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const

export type GgufValue =
  | { readonly type: 'u32' | 'f32', readonly value: number }
  | { readonly type: 'bool', readonly value: boolean }
  | { readonly type: 'string', readonly value: string }
  | { readonly type: 'strings', readonly value: readonly string[] }
  | { readonly type: 'i32s' | 'f32s', readonly value: readonly number[] }

/** Data types of tensors; only the two that this writer needs. */
export const tensorTypes = { f32: 0, f16: 1 } as const

export interface GgufTensor {
  readonly name: string
  /** Innermost dimension first, as GGUF counts them. */
  readonly dims: readonly number[]
  readonly type: keyof typeof tensorTypes
  readonly data: Buffer
}

const ALIGNMENT = 32

/** A GGUF file, version 3, little-endian: keys and tensors in the order given. */
export function writeGguf (keys: ReadonlyArray<readonly [string, GgufValue]>, tensors: readonly GgufTensor[]): Buffer {
  const head: Buffer[] = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(keys.length)]
  for (const [key, value] of keys) head.push(text(key), valueBytes(value))
  let offset = 0
  for (const tensor of tensors) {
    head.push(text(tensor.name), u32(tensor.dims.length), ...tensor.dims.map(u64), u32(tensorTypes[tensor.type]), u64(offset))
    offset += padded(tensor.data.length)
  }
  return Buffer.concat([pad(Buffer.concat(head)), ...tensors.map(t => pad(t.data))])
}

function valueBytes (value: GgufValue): Buffer {
  switch (value.type) {
    case 'u32': return Buffer.concat([u32(types.u32), u32(value.value)])
    case 'f32': return Buffer.concat([u32(types.f32), f32s([value.value])])
    case 'bool': return Buffer.concat([u32(types.bool), Buffer.from([value.value ? 1 : 0])])
    case 'string': return Buffer.concat([u32(types.string), text(value.value)])
    case 'strings': return Buffer.concat([array(types.string, value.value.length), ...value.value.map(text)])
    case 'i32s': return Buffer.concat([array(types.i32, value.value.length), ...value.value.map(u32)])
    case 'f32s': return Buffer.concat([array(types.f32, value.value.length), f32s(value.value)])
  }
}

function array (type: number, length: number): Buffer {
  return Buffer.concat([u32(types.array), u32(type), u64(length)])
}

function text (value: string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([u64(bytes.length), bytes])
}

function u32 (value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function u64 (value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

export function f32s (values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  values.forEach((value, i) => bytes.writeFloatLE(value, i * 4))
  return bytes
}

function padded (length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT
}

function pad (bytes: Buffer): Buffer {
  return Buffer.concat([bytes], padded(bytes.length))
}
