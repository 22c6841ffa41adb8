import type { Store } from '../store/store.js'

/** A vector of length one. */
export type Vector = Float32Array

/** Divides by the length. Null for what has none, or holds what is no number. Pure. */
export function normalized (numbers: ArrayLike<number>): Vector | null {
  let sum = 0
  for (let i = 0; i < numbers.length; i++) sum += numbers[i]! * numbers[i]!
  if (!Number.isFinite(sum) || sum === 0) return null
  const length = Math.sqrt(sum)
  const vector = new Float32Array(numbers.length)
  for (let i = 0; i < vector.length; i++) vector[i] = numbers[i]! / length
  return vector
}

export function dot (a: Vector, b: Vector): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

/** How many words of 32 bits the signs of a vector take. */
export function codeWords (dimensions: number): number {
  return Math.ceil(dimensions / 32)
}

/** The signs of its numbers, one bit each. Pure. */
export function codeOf (vector: Vector): Uint32Array {
  const code = new Uint32Array(codeWords(vector.length))
  for (let i = 0; i < vector.length; i++) if (vector[i]! > 0) code[i >>> 5]! |= 1 << (i & 31)
  return code
}

/** The number of a model, whose vectors compare with each other only; made if it is new. */
export function modelNumber (store: Store, name: string, dimensions: number): number {
  store.run('INSERT OR IGNORE INTO embed_models (name, dimensions) VALUES (?, ?)', [name, dimensions])
  return store.get<{ seq: number }>('SELECT seq FROM embed_models WHERE name = ? AND dimensions = ?', [name, dimensions])!.seq
}

/** Of the model that goes by this name now; -1 if nothing was embedded with it. */
export function knownModel (store: Store, name: string): number {
  return store.kept<{ seq: number }>('SELECT seq FROM embed_models WHERE name = ? ORDER BY seq DESC LIMIT 1', [name])?.seq ?? -1
}

/** Replaces whatever vector the memory had. Called in a transaction. */
export function putVector (store: Store, bank: number, memory: number, model: number, vector: Vector): void {
  const code = codeOf(vector)
  store.run('DELETE FROM vector_codes WHERE memory = ?', [memory])
  store.run('INSERT OR REPLACE INTO vectors (memory, bank, model, vector) VALUES (?, ?, ?, ?)', [memory, bank, model, bytesOf(vector)])
  store.run('INSERT INTO vector_codes (bank, model, memory, code) VALUES (?, ?, ?, ?)', [bank, model, memory, bytesOf(code)])
  store.run('UPDATE memories SET vector_model = ?, embed_tries = 0 WHERE seq = ?', [model, memory])
  store.run('DELETE FROM embed_anyway WHERE memory = ?', [memory])
}

function bytesOf ({ buffer, byteOffset, byteLength }: Float32Array | Uint32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Vectors of these memories, as far as they are valid. */
export function vectorsOf (
  store: Store, model: number, memories: readonly number[]
): ReadonlyArray<{ readonly seq: number, readonly vector: Vector }> {
  return store.all<{ seq: number, vector: ArrayBuffer }>(
    `SELECT m.seq AS seq, v.vector AS vector FROM json_each(?) AS wanted
     JOIN vectors v ON v.memory = wanted.value JOIN memories m ON m.seq = v.memory
     WHERE v.model = ? AND m.state = 'valid'`, [JSON.stringify(memories), model]
  ).map(({ seq, vector }) => ({ seq, vector: new Float32Array(vector) }))
}

/** Cosines of the angles between these memories, as far as they are valid, and the query. No vector leaves the database. */
export function cosinesTo (
  store: Store, model: number, query: Vector, memories: readonly number[]
): ReadonlyArray<readonly [memory: number, cosine: number]> {
  return store.lists<[number, number]>('m.seq, 1 - vector_distance_cos(v.vector, ?)',
    `FROM json_each(?) AS wanted JOIN vectors v ON v.memory = wanted.value JOIN memories m ON m.seq = v.memory
     WHERE v.model = ? AND m.state = 'valid'`, [bytesOf(query), JSON.stringify(memories), model])
}

/** All vectors of a bank, in the order of its memories. */
export function vectorsOfBank (
  store: Store, bank: number, model: number
): ReadonlyArray<{ readonly memory: number, readonly vector: Vector }> {
  return store.all<{ memory: number, vector: ArrayBuffer }>(
    `SELECT v.memory AS memory, v.vector AS vector FROM vector_codes c JOIN vectors v ON v.memory = c.memory AND v.model = c.model
     WHERE c.bank = ? AND c.model = ? ORDER BY c.memory`, [bank, model]).map(({ memory, vector }) => ({ memory, vector: new Float32Array(vector) }))
}

/** Which of these memories have a vector of the model and are valid. */
export function withVectors (store: Store, model: number, memories: readonly number[]): ReadonlySet<number> {
  // without CROSS the index of models would be gone through
  return new Set(store.lists<[number]>('m.seq', `FROM json_each(?) AS wanted CROSS JOIN memories m ON m.seq = wanted.value
     WHERE m.vector_model = ? AND m.state = 'valid'`, [JSON.stringify(memories), model]).map(([seq]) => seq))
}
