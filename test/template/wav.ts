/** What a WAV file of 16-bit samples says of itself, held against what is in it. */
export interface Wav {
  readonly seconds: number
  /** Root mean square of the samples; silence is 0, full scale 32768. */
  readonly loudness: number
}

/** Reads it as a player does that trusts the header. Throws when the header does not fit the bytes. */
export function readWav (file: Buffer): Wav {
  const tag = (at: number): string => file.toString('latin1', at, at + 4)
  const header = [tag(0), tag(8), tag(12), tag(36)].join(' ')
  if (header !== 'RIFF WAVE fmt  data') throw new Error(`no plain WAV file: ${header}`)
  if (file.readUInt32LE(4) !== file.length - 8) throw new Error(`the file has ${file.length} bytes, its header says ${file.readUInt32LE(4) + 8}`)
  const size = file.readUInt32LE(40)
  if (size !== file.length - 44) throw new Error(`there are ${file.length - 44} bytes of samples, the header says ${size}`)
  let squares = 0
  for (let at = 44; at < file.length; at += 2) squares += file.readInt16LE(at) ** 2
  return { seconds: size / file.readUInt32LE(28), loudness: Math.sqrt(squares / (size / 2)) }
}
