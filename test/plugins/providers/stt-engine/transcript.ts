import { wavSeconds } from '../audio/sound.js'

export interface Segment {
  readonly start: number
  readonly end: number
  readonly text: string
}

export interface Heard {
  readonly seconds: number
  readonly segments: readonly Segment[]
}

const SEGMENT_SECONDS = 2

/** What the fakes hear in a WAV file: one segment for every two seconds. Null for what is no WAV file. */
export function hear (file: Buffer): Heard | null {
  const seconds = wavSeconds(file)
  if (seconds === null) return null
  const segments = Array.from({ length: Math.ceil(seconds / SEGMENT_SECONDS) }, (_, i) => ({
    start: i * SEGMENT_SECONDS, end: Math.min((i + 1) * SEGMENT_SECONDS, seconds), text: ` Segment ${i + 1}.`
  }))
  return { seconds, segments }
}

export function textOf ({ segments }: Heard): string {
  return segments.map(({ text }) => text).join('').trim()
}

/** `00:00:02,000` for subtitles, with a point for WebVTT. */
export function timeOf (seconds: number, mark: ',' | '.'): string {
  const ms = Math.round(seconds * 1000)
  const two = (n: number): string => String(Math.floor(n)).padStart(2, '0')
  return `${two(ms / 3_600_000)}:${two(ms / 60_000 % 60)}:${two(ms / 1000 % 60)}${mark}${String(ms % 1000).padStart(3, '0')}`
}

export function srtOf ({ segments }: Heard): string {
  return segments.map(({ start, end, text }, i) => `${i + 1}\n${timeOf(start, ',')} --> ${timeOf(end, ',')}\n${text}\n\n`).join('')
}

export function vttOf ({ segments }: Heard): string {
  return `WEBVTT\n\n${segments.map(({ start, end, text }) => `${timeOf(start, '.')} --> ${timeOf(end, '.')}\n${text}\n\n`).join('')}`
}

export interface ReadForm {
  readonly file: Buffer | null
  text (name: string): string | null
}

/** A form as a server's framework reads it. */
export async function readForm (body: Buffer, contentType: string): Promise<ReadForm> {
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData()
  const file = form.get('file')
  return {
    file: file === null || typeof file === 'string' ? null : Buffer.from(await file.arrayBuffer()),
    text: name => {
      const value = form.get(name)
      return typeof value === 'string' ? value : null
    }
  }
}
