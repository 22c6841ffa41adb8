const N_VOCAB = 51_865
const TOKENS = 50_257
/** Whisper's tiny model, but narrow. Vocabulary; audio context, state, heads, layers; text context and so on; mels, type. */
const NARROW = [N_VOCAB, 1500, 64, 1, 4, 448, 64, 1, 4, 80, 1]
const MEL_BANDS = 80
const MEL_BINS = 201

/**
 * A model file of whisper.cpp that holds no weights: its loader takes it "for testing", and the server hears nothing in
 * anything. 600 kB.
 */
export function emptyGgml (): Buffer {
  const tokens = Array.from({ length: TOKENS }, (_, i) => i < 256 ? Buffer.from([i]) : Buffer.from(` w${i}`))
  return Buffer.concat([
    int32(0x67676d6c, ...NARROW),
    int32(MEL_BANDS, MEL_BINS),
    Buffer.from(new Float32Array(MEL_BANDS * MEL_BINS).fill(0.01).buffer),
    int32(TOKENS),
    ...tokens.flatMap(token => [int32(token.length), token])
  ])
}

function int32 (...values: readonly number[]): Buffer {
  return Buffer.from(Int32Array.from(values).buffer)
}
