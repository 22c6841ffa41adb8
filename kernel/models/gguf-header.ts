import { gguf, GGMLFileQuantizationType, GGMLQuantizationType, parseGGUFQuantLabel } from '@huggingface/gguf'
import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { tensorBytes } from './ggml-types.js'

/** What is taken over from a header: single values, no lists, so that a vocabulary never leaves the worker. */
export interface GgufHeader {
  readonly size_bytes: number
  readonly values: Readonly<Record<string, string | number | boolean>>
  readonly parameter_count: number
  /** Of the file's name. */
  readonly quantInName: string | null
  /** What most of the weights are, or the file says it is. */
  readonly quantInFile: string | null
}

const MAX_VALUES = 2_000

/**
 * Reads a header with the field's own parser. It reads on past the end of a file as if zeros followed, so what it found
 * is held against the size of the file. Throws an `Error` that says what is wrong. Runs in a worker: a header with a
 * large vocabulary takes a second of pure computing.
 */
export async function readHeader (path: string): Promise<GgufHeader> {
  const { size } = await stat(path)
  const { metadata, tensorInfos, tensorInfoByteRange: [, headerEnd], tensorDataOffset, littleEndian } =
    await gguf(path, { allowLocalFile: true })
  if (headerEnd > size) throw new Error('the file ends in the middle of its header')
  if (!littleEndian) throw new Error('the file is for big-endian machines')
  let weights = 0
  let end = headerEnd
  const bytesOf = new Map<number, number>()
  for (const { name, shape, dtype, offset } of tensorInfos) {
    const count = shape.reduce((product, dim) => product * Number(dim), 1)
    const bytes = tensorBytes(dtype, count)
    weights += count
    bytesOf.set(dtype, (bytesOf.get(dtype) ?? 0) + bytes)
    end = Math.max(end, Number(tensorDataOffset + offset) + bytes)
    if (end > size) throw new Error(`the file is truncated: tensor ${name.slice(0, 80)} needs ${end} bytes and there are ${size}`)
  }
  const values = singleValues(metadata)
  return {
    size_bytes: size,
    values,
    parameter_count: weights,
    quantInName: parseGGUFQuantLabel(basename(path).toUpperCase()) ?? null,
    quantInFile: quantOf(values['general.file_type'], bytesOf)
  }
}

function singleValues (metadata: object): GgufHeader['values'] {
  const values: Record<string, string | number | boolean> = {}
  for (const [key, value] of Object.entries(metadata).slice(0, MAX_VALUES)) {
    if (typeof value === 'bigint') values[key] = Number(value)
    else if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') values[key] = value
  }
  return values
}

function quantOf (fileType: unknown, bytesOf: ReadonlyMap<number, number>): string | null {
  const declared = typeof fileType === 'number' ? GGMLFileQuantizationType[fileType] : undefined
  if (declared !== undefined) return declared
  const [most] = [...bytesOf].sort(([, a], [, b]) => b - a)
  return most === undefined ? null : GGMLQuantizationType[most[0]] ?? null
}
