/** Audio as the fakes of speech engines make it: tones that take as long as the text would. */

export const SAMPLE_RATE = 24_000
const SECONDS_PER_CHARACTER = 0.06

/** Seconds that a text takes to say. */
export function spokenSeconds (text: string, speed: number): number {
  return text.trim().length * SECONDS_PER_CHARACTER / speed
}

/** Mono samples of 16 bits. */
export function pcmOf (seconds: number, rate = SAMPLE_RATE): Buffer {
  const samples = new Int16Array(Math.round(seconds * rate))
  for (let i = 0; i < samples.length; i++) samples[i] = Math.round(Math.sin(i * 2 * Math.PI * 220 / rate) * 8000)
  return Buffer.from(samples.buffer)
}

/** @param known false for one whose length is not known when its head is sent */
export function wavHead (bytes: number, rate = SAMPLE_RATE, known = true): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(known ? bytes + 36 : 0xffffffff, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate * 2, 28)
  head.writeUInt16LE(2, 32)
  head.writeUInt16LE(16, 34)
  head.write('data', 36)
  head.writeUInt32LE(known ? bytes : 0xffffffff, 40)
  return head
}

export function wavOf (seconds: number, rate = SAMPLE_RATE): Buffer {
  const samples = pcmOf(seconds, rate)
  return Buffer.concat([wavHead(samples.length, rate), samples])
}

/** Seconds of a WAV file of 16-bit samples; null when it is none. */
export function wavSeconds (file: Buffer): number | null {
  if (file.length < 44 || file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') return null
  let at = 12
  let bytesPerSecond = 0
  while (at + 8 <= file.length) {
    const id = file.toString('latin1', at, at + 4)
    const size = Math.min(file.readUInt32LE(at + 4), file.length - at - 8)
    if (id === 'fmt ') bytesPerSecond = file.readUInt32LE(at + 16)
    if (id === 'data') return bytesPerSecond === 0 ? null : size / bytesPerSecond
    at += 8 + size + size % 2
  }
  return null
}

const MP3_FRAME_SAMPLES = 576
const MP3_FRAME_BYTES = 192

/** Silence: frames of MPEG-2 layer III, 24 kHz, 64 kbit/s, mono, with nothing in them. */
export function mp3Of (seconds: number): Buffer {
  const frame = Buffer.alloc(MP3_FRAME_BYTES)
  frame.set([0xff, 0xf3, 0x84, 0xc4])
  return Buffer.concat(Array.from({ length: Math.max(1, Math.round(seconds * SAMPLE_RATE / MP3_FRAME_SAMPLES)) }, () => frame))
}

export function mp3Seconds (file: Buffer): number | null {
  if (file.length % MP3_FRAME_BYTES !== 0) return null
  for (let at = 0; at < file.length; at += MP3_FRAME_BYTES) if (file.readUInt32BE(at) !== 0xfff384c4) return null
  return file.length / MP3_FRAME_BYTES * MP3_FRAME_SAMPLES / SAMPLE_RATE
}
